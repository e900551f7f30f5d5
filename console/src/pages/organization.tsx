import { useState } from 'preact/hooks'
import { useAccount } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { Action } from '../components/action.tsx'
import { Credentials } from '../components/credentials.tsx'
import { PageHeader, Skeleton } from '../components/layout.tsx'
import { Limits } from '../components/limits.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { Problem } from '../components/problem.tsx'
import { Badge, Id } from '../components/text.tsx'
import { Usage } from '../components/usage.tsx'
import { useResource } from '../lib/use-resource.ts'

/** One organization with its keys, limits and usage. */
export function Page({ params }: PageProps) {
  const { client, may } = useAccount()
  const organization_id = params.organization ?? ''
  const [renaming, setRenaming] = useState(false)
  const loaded = useResource(
    async (signal) => {
      // There is no GetOrganization: pages are read until it is found.
      for (let page_token = ''; ; ) {
        const request = { page_size: 100, ...(page_token && { page_token }) }
        const page = await client.admin.ListOrganizations(request, { signal })
        const found = page.organizations.find((one) => one.organization_id === organization_id)
        if (found) return found
        page_token = page.pagination.next_page_token
        if (!page_token) throw new Error('There is no organization of this id.')
      }
    },
    [organization_id],
  )
  const organization = loaded.data
  if (!organization)
    return (
      <>
        <PageHeader title="Organization" />
        {loaded.loading ? (
          <Skeleton lines={8} />
        ) : (
          <Problem error={loaded.error} onRetry={loaded.reload} />
        )}
      </>
    )
  return (
    <>
      <PageHeader
        title={organization.name}
        about={
          <>
            <code>{organization.domain}</code>{' '}
            <Id value={organization_id} label="organization_id" />{' '}
            {organization.disable_time && <Badge tone="bad">Disabled</Badge>}
          </>
        }
        actions={
          <>
            {may('RenameOrganization') && (
              <button type="button" class="button" onClick={() => setRenaming(true)}>
                Rename
              </button>
            )}
            {organization.disable_time
              ? may('EnableOrganization') && (
                  <Action
                    tone="primary"
                    run={() => client.admin.EnableOrganization({ organization_id })}
                    onDone={loaded.reload}
                  >
                    Enable
                  </Action>
                )
              : may('DisableOrganization') && (
                  <Action
                    tone="danger"
                    confirm={`Refuse all keys of “${organization.name}” from now on?`}
                    run={() => client.admin.DisableOrganization({ organization_id })}
                    onDone={loaded.reload}
                  >
                    Disable
                  </Action>
                )}
          </>
        }
      />
      <div class="stack">
        <Credentials organization_id={organization_id} />
        <Limits organization_id={organization_id} />
        <Usage organization_id={organization_id} />
      </div>
      {renaming && (
        <OperationDialog
          title="Rename the organization"
          submit="Rename"
          on="admin"
          operation="RenameOrganization"
          known={{ organization_id, name: organization.name, domain: organization.domain }}
          fixed={['organization_id']}
          run={async (request) => {
            await client.admin.RenameOrganization(request as { organization_id: string })
            setRenaming(false)
            loaded.reload()
          }}
          onClose={() => setRenaming(false)}
        />
      )}
    </>
  )
}
