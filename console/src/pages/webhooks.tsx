import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLiveReload } from '../app/use-live.ts'
import { ChainTabs } from '../components/chain-tabs.tsx'
import { Empty, PageHeader, Panel } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { PagedTable } from '../components/table.tsx'
import { Badge, Id } from '../components/text.tsx'
import { type Chain, chainId, chainTitle } from '../lib/chains.ts'
import { formatPercent } from '../lib/format.ts'
import { pathTo } from '../lib/router.ts'
import { usePages } from '../lib/use-resource.ts'
import { VerifyPayload } from './webhooks/verify-payload.tsx'

/** The webhooks of the organization on one chain, and a check of pasted deliveries. */
export function Page({ params }: PageProps) {
  const { chains, chain } = useChain(params.chain)
  if (!chain) return <NoChain title="Webhooks" />
  return <Webhooks key={chainId(chain)} chains={chains} chain={chain} />
}

function Webhooks({ chains, chain }: { chains: readonly Chain[]; chain: Chain }) {
  const { on, may } = useAccount()
  const { router } = useApp()
  const [registering, setRegistering] = useState(false)
  const operations = on(chain)
  const list = usePages(async (page_token, signal) => {
    const request = { page_size: 100, ...(page_token && { page_token }) }
    const { webhooks, pagination } = await operations.ListWebhooks(request, { signal })
    return { items: webhooks, next: pagination.next_page_token }
  }, [])
  useLiveReload(({ type, chain: name }) => type === 'delivery' && name === chain.chain, list.reload)
  return (
    <>
      <PageHeader
        title="Webhooks"
        about="Signed notifications of transfers, in order and without a gap."
        actions={
          may('RegisterWebhook', chain) && (
            <button type="button" class="button primary" onClick={() => setRegistering(true)}>
              Register a webhook
            </button>
          )
        }
      />
      <ChainTabs section="webhooks" chains={chains} current={chain} />
      <div class="stack">
        <Panel flush>
          <PagedTable
            label={`Webhooks on ${chainTitle(chain)}`}
            list={list}
            keyOf={({ webhook_id }) => webhook_id}
            columns={[
              {
                title: 'Endpoint',
                cell: ({ webhook_id, webhook_endpoint }) => (
                  <Link to={pathTo('webhooks', chainId(chain), webhook_id)} class="cell-text">
                    {webhook_endpoint}
                  </Link>
                ),
              },
              {
                title: 'State',
                cell: ({ enabled, disable_reason }) =>
                  enabled ? (
                    <Badge tone="good">Enabled</Badge>
                  ) : (
                    <Badge tone="bad" title={disable_reason}>
                      Disabled
                    </Badge>
                  ),
              },
              {
                title: 'Success',
                align: 'end',
                cell: ({ success_rate }) => formatPercent(success_rate),
              },
              {
                title: 'Confirmations',
                align: 'end',
                hide: 'medium',
                cell: ({ confirmation }) => confirmation,
              },
              {
                title: 'Wallet',
                hide: 'medium',
                cell: ({ wallet_id }) =>
                  wallet_id ? (
                    <Id value={wallet_id} to={pathTo('wallets', chainId(chain), wallet_id)} />
                  ) : (
                    'all wallets'
                  ),
              },
              {
                title: 'Last error',
                hide: 'narrow',
                cell: ({ last_error }) => <span class="cell-text soft">{last_error || '–'}</span>,
              },
            ]}
            empty={
              <Empty title={`No webhook on ${chainTitle(chain)} yet.`}>
                <p>Register the address of your receiver; it is notified of every transfer.</p>
              </Empty>
            }
          />
        </Panel>
        <VerifyPayload />
      </div>
      {registering && (
        <OperationDialog
          title={`Register a webhook on ${chainTitle(chain)}`}
          submit="Register"
          on={chain}
          operation="RegisterWebhook"
          known={{ confirmation: 1 }}
          run={async (request) => {
            const { webhook_id } = await operations.RegisterWebhook(
              request as Parameters<typeof operations.RegisterWebhook>[0],
            )
            router.go(pathTo('webhooks', chainId(chain), webhook_id))
          }}
          onClose={() => setRegistering(false)}
        />
      )}
    </>
  )
}
