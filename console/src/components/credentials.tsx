import type { Client, ItemOf } from '@portolan/client'
import { useState } from 'preact/hooks'
import { useAccount } from '../app/context.ts'
import { formatConstant } from '../lib/format.ts'
import { usePages } from '../lib/use-resource.ts'
import { Action } from './action.tsx'
import { Dialog } from './dialog.tsx'
import { Empty, Facts, Panel } from './layout.tsx'
import { OperationDialog } from './operation-form.tsx'
import { PagedTable } from './table.tsx'
import { Badge, Id, Time } from './text.tsx'

type Credential = ItemOf<Awaited<ReturnType<Client['admin']['ListCredentials']>>>

const everywhere = ['0.0.0.0/0', '::/0']

/** The API keys of an organization: create, rotate, restrict, revoke. */
export function Credentials({ organization_id }: { organization_id: string }) {
  const { client, may, credential: own } = useAccount()
  const [creating, setCreating] = useState(false)
  const [editing, setEditing] = useState<Credential | undefined>()
  const [shown, setShown] = useState<{ api_key: string; api_secret: string } | undefined>()
  const list = usePages(
    async (page_token, signal) => {
      const request = { organization_id, page_size: 100, ...(page_token && { page_token }) }
      const { credentials, pagination } = await client.admin.ListCredentials(request, { signal })
      return { items: credentials, next: pagination.next_page_token }
    },
    [organization_id],
  )
  return (
    <Panel
      flush
      title="API keys"
      actions={
        may('CreateCredential') && (
          <button type="button" class="button small" onClick={() => setCreating(true)}>
            Create a key
          </button>
        )
      }
    >
      <PagedTable
        label="API keys"
        list={list}
        keyOf={({ credential_id }) => credential_id}
        columns={[
          {
            title: 'Key',
            cell: ({ api_key_hint, credential_id, name }) => (
              <>
                <code>{api_key_hint}</code> <span class="soft">{name}</span>{' '}
                {credential_id === own.credential_id && <Badge tone="sea">yours</Badge>}
              </>
            ),
          },
          { title: 'Role', cell: ({ role }) => formatConstant(role, 'ROLE_') },
          {
            title: 'Scopes',
            hide: 'medium',
            cell: ({ scopes }) => <span class="cell-text mono">{scopes.join(' ')}</span>,
          },
          {
            title: 'Used from',
            hide: 'medium',
            cell: ({ allowed_client_networks: networks }) =>
              networks.every((network) => everywhere.includes(network)) ? (
                'anywhere'
              ) : (
                <span class="cell-text mono">{networks.join(' ')}</span>
              ),
          },
          {
            title: 'Last used',
            hide: 'narrow',
            cell: ({ last_used_time }) => <Time at={last_used_time} none="never" />,
          },
          {
            title: 'Expires',
            hide: 'narrow',
            cell: ({ expire_time }) => <Time at={expire_time} none="never" />,
          },
          {
            title: '',
            align: 'end',
            cell: (credential) => {
              const { credential_id, api_key_hint } = credential
              return (
                <span class="actions">
                  {may('UpdateCredential') && (
                    <button
                      type="button"
                      class="button small"
                      onClick={() => setEditing(credential)}
                    >
                      Edit
                    </button>
                  )}
                  {may('RotateCredential') && (
                    <Action
                      small
                      confirm={`Put a new key in the place of ${api_key_hint}? Both work for a while.`}
                      run={async () => {
                        const answer = await client.admin.RotateCredential({ credential_id })
                        setShown(answer.credential)
                        list.reload()
                      }}
                    >
                      Rotate
                    </Action>
                  )}
                  {may('RevokeCredential') && (
                    <Action
                      small
                      tone="danger"
                      confirm={`Revoke ${api_key_hint}? Every program that uses it is refused at once.`}
                      run={() => client.admin.RevokeCredential({ credential_id })}
                      onDone={list.reload}
                    >
                      Revoke
                    </Action>
                  )}
                </span>
              )
            },
          },
        ]}
        empty={<Empty title="No key." />}
      />
      {creating && (
        <OperationDialog
          title="Create a key"
          submit="Create"
          on="admin"
          operation="CreateCredential"
          known={{ organization_id, role: 'ROLE_MEMBER' }}
          fixed={['organization_id']}
          run={async (request) => {
            const call = client.admin.CreateCredential
            const { credential } = await call(request as Parameters<typeof call>[0])
            setCreating(false)
            setShown(credential)
            list.reload()
          }}
          onClose={() => setCreating(false)}
        />
      )}
      {editing !== undefined && (
        <OperationDialog
          title="Edit the key"
          submit="Save"
          on="admin"
          operation="UpdateCredential"
          known={knownOf(editing)}
          fixed={['credential_id']}
          run={async ({ expire_time, ...request }) => {
            // The time in the form is the one that is to be removed.
            const keeps = expire_time !== undefined && request.remove_expire_time !== true
            await client.admin.UpdateCredential({
              ...(request as { credential_id: string }),
              ...(keeps && { expire_time: String(expire_time) }),
            })
            setEditing(undefined)
            list.reload()
          }}
          onClose={() => setEditing(undefined)}
        />
      )}
      {shown && (
        <Dialog title="The new key" onClose={() => setShown(undefined)}>
          <p class="notice">The secret is shown now and never again.</p>
          <Facts
            rows={[
              ['api_key', <Id key="key" value={shown.api_key} whole label="api_key" />],
              ['api_secret', <Id key="secret" value={shown.api_secret} whole label="api_secret" />],
            ]}
          />
        </Dialog>
      )}
    </Panel>
  )
}

/** What the form begins with: the key as it is. A time that has passed would be refused when only the name changes. */
const knownOf = (credential: Credential) => {
  const { credential_id, name, scopes, allowed_client_networks, expire_time } = credential
  const isAhead = expire_time !== null && Date.parse(expire_time) > Date.now()
  return {
    ...{ credential_id, name, scopes, allowed_client_networks },
    ...(isAhead && { expire_time }),
  }
}
