import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import { Empty, PageHeader, Panel } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { PagedTable } from '../components/table.tsx'
import { Badge, Id, Time } from '../components/text.tsx'
import { pathTo } from '../lib/router.ts'
import { usePages } from '../lib/use-resource.ts'

/** All organizations, for administrators. */
export function Page() {
  const { client, may } = useAccount()
  const { router } = useApp()
  const [creating, setCreating] = useState(false)
  const list = usePages(async (page_token, signal) => {
    const request = { page_size: 100, ...(page_token && { page_token }) }
    const { organizations, pagination } = await client.admin.ListOrganizations(request, { signal })
    return { items: organizations, next: pagination.next_page_token }
  }, [])
  return (
    <>
      <PageHeader
        title="Organizations"
        about="Tenants of this installation. Nothing of one is visible to another."
        actions={
          may('CreateOrganization') && (
            <button type="button" class="button primary" onClick={() => setCreating(true)}>
              Create an organization
            </button>
          )
        }
      />
      <Panel flush>
        <PagedTable
          label="Organizations"
          list={list}
          keyOf={({ organization_id }) => organization_id}
          columns={[
            {
              title: 'Name',
              cell: ({ organization_id, name }) => (
                <Link to={pathTo('organizations', organization_id)} class="cell-text">
                  {name}
                </Link>
              ),
            },
            { title: 'Domain', cell: ({ domain }) => <code>{domain}</code> },
            {
              title: 'State',
              cell: ({ disable_time }) =>
                disable_time ? (
                  <Badge tone="bad">Disabled</Badge>
                ) : (
                  <Badge tone="good">Enabled</Badge>
                ),
            },
            {
              title: 'Organization',
              hide: 'medium',
              cell: ({ organization_id }) => <Id value={organization_id} label="organization_id" />,
            },
            {
              title: 'Created',
              hide: 'narrow',
              cell: ({ create_time }) => <Time at={create_time} />,
            },
          ]}
          empty={<Empty title="No organization yet." />}
        />
      </Panel>
      {creating && (
        <OperationDialog
          title="Create an organization"
          submit="Create"
          on="admin"
          operation="CreateOrganization"
          run={async (request) => {
            const { organization } = await client.admin.CreateOrganization(
              request as { name: string; domain: string },
            )
            router.go(pathTo('organizations', organization.organization_id))
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </>
  )
}
