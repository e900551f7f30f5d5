import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLiveReload } from '../app/use-live.ts'
import { ChainTabs } from '../components/chain-tabs.tsx'
import { Empty, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { Problem } from '../components/problem.tsx'
import { PagedTable } from '../components/table.tsx'
import { Amount, Badge, Id } from '../components/text.tsx'
import { type Chain, chainId, hasWallets, isEvm } from '../lib/chains.ts'
import { formatConstant } from '../lib/format.ts'
import { unitOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import { usePages, useResource } from '../lib/use-resource.ts'

/** Transactions that are created here, signed outside and followed until they are confirmed. */
export function Page({ params }: PageProps) {
  const { chains, chain } = useChain(params.chain, (one) => isEvm(one) && hasWallets(one))
  if (!chain) return <NoChain title="Transactions" />
  return <Transactions key={chainId(chain)} chains={chains} chain={chain} />
}

function Transactions({ chains, chain }: { chains: readonly Chain[]; chain: Chain }) {
  const { on, may } = useAccount()
  const { router } = useApp()
  const [creating, setCreating] = useState<'CreateTransaction' | 'CreateTokenTransaction'>()
  const operations = on(chain)
  const wallets = useResource(
    (signal) => operations.ListWallets({ page_size: 100 }, { signal }).then((page) => page.wallets),
    [],
  )
  const chosen = router.place.value.query.get('wallet') || wallets.data?.[0]?.wallet_id
  const wallet = wallets.data?.find(({ wallet_id }) => wallet_id === chosen)
  return (
    <>
      <PageHeader
        title="Transactions"
        about="The service has no keys: it creates, you sign, it sends and follows."
        actions={
          chosen &&
          may('CreateTransaction', chain) && (
            <>
              <button
                type="button"
                class="button primary"
                onClick={() => setCreating('CreateTransaction')}
              >
                Send coin
              </button>
              <button
                type="button"
                class="button"
                onClick={() => setCreating('CreateTokenTransaction')}
              >
                Send a token
              </button>
            </>
          )
        }
      />
      <ChainTabs section="transactions" chains={chains} current={chain} />
      <Problem error={wallets.error} onRetry={wallets.reload} />
      {!wallets.data && wallets.loading && <Skeleton lines={6} />}
      {wallets.data?.length === 0 && (
        <Empty title="No wallet on this chain.">
          <p>Transactions are sent from the addresses of a wallet: register one first.</p>
        </Empty>
      )}
      {chosen && (
        <Panel
          flush
          title="Of the wallet"
          actions={
            <select
              aria-label="Wallet"
              value={chosen}
              onChange={(event) => router.setQuery({ wallet: event.currentTarget.value })}
            >
              {wallets.data?.map(({ wallet_id, name }) => (
                <option key={wallet_id} value={wallet_id}>
                  {name}
                </option>
              ))}
            </select>
          }
        >
          <List key={chosen} chain={chain} wallet_id={chosen} />
        </Panel>
      )}
      {creating && chosen && (
        <OperationDialog
          title={creating === 'CreateTransaction' ? 'Send coin' : 'Send a token'}
          submit="Create"
          on={chain}
          operation={creating}
          known={{ wallet_id: chosen, from: wallet?.addresses[0] }}
          fixed={['wallet_id']}
          run={async (request) => {
            const call = operations[creating as 'CreateTransaction']
            const { transaction } = await call(request as Parameters<typeof call>[0])
            router.go(pathTo('transactions', chainId(chain), transaction.transaction_id))
          }}
          onClose={() => setCreating(undefined)}
        />
      )}
    </>
  )
}

const tones: Readonly<Record<string, 'good' | 'bad' | 'warn' | 'sea'>> = {
  CONFIRMED: 'good',
  MINED: 'sea',
  SENT: 'sea',
  REVERTED: 'bad',
  REPLACED: 'warn',
  CANCELED: 'warn',
}

function List({ chain, wallet_id }: { chain: Chain; wallet_id: string }) {
  const { on } = useAccount()
  const list = usePages(async (page_token, signal) => {
    const request = { wallet_id, page_size: 100, ...(page_token && { page_token }) }
    const { transactions, pagination } = await on(chain).ListTransactions(request, { signal })
    return { items: transactions, next: pagination.next_page_token }
  }, [])
  useLiveReload(({ type }) => type === 'transaction', list.reload)
  return (
    <PagedTable
      label="Transactions"
      list={list}
      keyOf={({ transaction_id }) => transaction_id}
      columns={[
        {
          title: 'Transaction',
          cell: ({ transaction_id }) => (
            <Id
              value={transaction_id}
              to={pathTo('transactions', chainId(chain), transaction_id)}
            />
          ),
        },
        {
          title: 'State',
          cell: ({ transaction_state, stuck }) => {
            const state = transaction_state.replace('TRANSACTION_STATE_', '')
            return (
              <>
                <Badge tone={tones[state] ?? 'plain'}>{formatConstant(state)}</Badge>
                {stuck && <Badge tone="bad">stuck</Badge>}
              </>
            )
          },
        },
        {
          title: 'Amount',
          align: 'end',
          cell: ({ value }) => <Amount value={value} unit={unitOf(chain, undefined, undefined)} />,
        },
        { title: 'To', hide: 'narrow', cell: ({ to }) => <Id value={to} label="receiver" /> },
        { title: 'Nonce', align: 'end', hide: 'medium', cell: ({ nonce }) => nonce },
      ]}
      empty={
        <Empty title="No transaction yet.">
          <p>Create one; gas, price and nonce are filled in where you leave them out.</p>
        </Empty>
      }
    />
  )
}
