import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { ChainTabs } from '../components/chain-tabs.tsx'
import { Empty, PageHeader, Panel } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { PagedTable } from '../components/table.tsx'
import { Id, Time } from '../components/text.tsx'
import { type Chain, chainId, chainTitle } from '../lib/chains.ts'
import { formatCount } from '../lib/format.ts'
import { pathTo } from '../lib/router.ts'
import { usePages } from '../lib/use-resource.ts'

/** The wallets of the organization on one chain. */
export function Page({ params }: PageProps) {
  const { chains, chain } = useChain(params.chain)
  if (!chain) return <NoChain title="Wallets" />
  return <Wallets key={chainId(chain)} chains={chains} chain={chain} />
}

function Wallets({ chains, chain }: { chains: readonly Chain[]; chain: Chain }) {
  const { on, may } = useAccount()
  const { router } = useApp()
  const [registering, setRegistering] = useState(false)
  const operations = on(chain)
  const list = usePages(
    async (page_token, signal) => {
      const request = { page_size: 100, ...(page_token && { page_token }) }
      const { wallets, pagination } = await operations.ListWallets(request, { signal })
      return { items: wallets, next: pagination.next_page_token }
    },
    [chainId(chain)],
  )
  const register = may('RegisterWallet', chain) && (
    <button type="button" class="button primary" onClick={() => setRegistering(true)}>
      Register a wallet
    </button>
  )
  return (
    <>
      <PageHeader
        title="Wallets"
        about="Groups of addresses whose transfers and balances are tracked."
        actions={register}
      />
      <ChainTabs section="wallets" chains={chains} current={chain} />
      <Panel flush>
        <PagedTable
          label={`Wallets on ${chainTitle(chain)}`}
          list={list}
          keyOf={({ wallet_id }) => wallet_id}
          columns={[
            {
              title: 'Name',
              cell: ({ wallet_id, name }) => (
                <Link to={pathTo('wallets', chainId(chain), wallet_id)} class="cell-text">
                  {name}
                </Link>
              ),
            },
            {
              title: 'Addresses',
              align: 'end',
              cell: ({ address_count }) => formatCount(address_count),
            },
            {
              title: 'First address',
              hide: 'medium',
              cell: ({ addresses }) => <Id value={addresses[0] ?? ''} label="address" />,
            },
            {
              title: 'Wallet',
              hide: 'narrow',
              cell: ({ wallet_id }) => <Id value={wallet_id} label="wallet_id" />,
            },
            { title: 'Created', cell: ({ create_time }) => <Time at={create_time} /> },
          ]}
          empty={
            <Empty title={`No wallet on ${chainTitle(chain)} yet.`}>
              <p>
                A wallet groups addresses. Its transfers, balances and webhooks are tracked from
                then on.
              </p>
            </Empty>
          }
        />
      </Panel>
      {registering && (
        <OperationDialog
          title={`Register a wallet on ${chainTitle(chain)}`}
          submit="Register"
          on={chain}
          operation="RegisterWallet"
          run={async (request) => {
            const { wallet_id } = await operations.RegisterWallet(request as { name: string })
            router.go(pathTo('wallets', chainId(chain), wallet_id))
          }}
          onClose={() => setRegistering(false)}
        />
      )}
    </>
  )
}
