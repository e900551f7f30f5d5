import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { Action } from '../components/action.tsx'
import { PageHeader, Skeleton } from '../components/layout.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { NoPage } from '../components/no-page.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { Problem } from '../components/problem.tsx'
import { LinkTabs } from '../components/tabs.tsx'
import { Id, Time } from '../components/text.tsx'
import { type Chain, chainId, isEvm, serviceOf } from '../lib/chains.ts'
import { formatCount } from '../lib/format.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'
import { Addresses } from './wallet/addresses.tsx'
import { Balances } from './wallet/balances.tsx'
import { Transfers } from './wallet/transfers.tsx'

const tabs = [
  ['', 'Transfers'],
  ['balances', 'Balances'],
  ['addresses', 'Addresses'],
] as const

/** One wallet: its transfers, balances and addresses. */
export function Page({ params }: PageProps) {
  const { chain } = useChain(params.chain)
  const wallet_id = params.wallet ?? ''
  if (!chain) return <NoChain title="Wallet" />
  return (
    <Wallet
      key={`${chainId(chain)} ${wallet_id}`}
      chain={chain}
      wallet_id={wallet_id}
      tab={params.tab ?? ''}
    />
  )
}

type Asked = { operation: string; title: string; submit: string; fixed: readonly string[] }

function Wallet({ chain, wallet_id, tab }: { chain: Chain; wallet_id: string; tab: string }) {
  const { on, may } = useAccount()
  const { router } = useApp()
  const [asked, setAsked] = useState<Asked | undefined>()
  const [version, setVersion] = useState(0)
  const operations = on(chain)
  const loaded = useResource(
    (signal) => operations.GetWallet({ wallet_id }, { signal }).then(({ wallet }) => wallet),
    [version],
  )
  const wallet = loaded.data
  const ask = (operation: string, title: string, submit: string, fixed = ['wallet_id']) =>
    may(operation, chain) && (
      <button
        type="button"
        class="button"
        onClick={() => setAsked({ operation, title, submit, fixed })}
      >
        {title}
      </button>
    )
  const hasImport = ['t', 's', 'p'].includes(serviceOf(chain))
  return (
    <>
      <PageHeader
        title={wallet?.name ?? 'Wallet'}
        about={
          <>
            <Id value={wallet_id} label="wallet_id" />
            {wallet && (
              <span>
                {' '}
                · {formatCount(wallet.address_count)}{' '}
                {wallet.address_count === 1 ? 'address' : 'addresses'} · created{' '}
                <Time at={wallet.create_time} />
              </span>
            )}
          </>
        }
        actions={
          wallet && (
            <>
              {ask('RegisterAddress', 'Add an address', 'Track')}
              {hasImport && ask('ImportAsset', 'Import a token', 'Import')}
              {isEvm(chain) && ask('RegisterContract', 'Track a token', 'Track', [])}
              {ask('RenameWallet', 'Rename', 'Rename')}
              {may('RemoveWallet', chain) && (
                <Action
                  tone="danger"
                  confirm={`Remove the wallet “${wallet.name}” with its addresses and webhooks? Its history stays.`}
                  run={() => operations.RemoveWallet({ wallet_id })}
                  onDone={() => router.go(pathTo('wallets', chainId(chain)))}
                >
                  Remove
                </Action>
              )}
            </>
          )
        }
      />
      <LinkTabs
        label="Parts of the wallet"
        tabs={tabs.map(([name, title]) => ({
          title,
          to: pathTo(...['wallets', chainId(chain), wallet_id, name].filter(Boolean)),
          isCurrent: name === tab,
        }))}
      />
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!wallet && loaded.loading && <Skeleton lines={6} />}
      {wallet && tab === '' && <Transfers chain={chain} wallet_id={wallet_id} />}
      {wallet && tab === 'balances' && (
        <Balances key={version} chain={chain} wallet_id={wallet_id} />
      )}
      {wallet && tab === 'addresses' && (
        <Addresses key={version} chain={chain} wallet_id={wallet_id} />
      )}
      {!tabs.some(([name]) => name === tab) && <NoPage />}
      {asked && (
        <OperationDialog
          title={asked.title}
          submit={asked.submit}
          on={chain}
          operation={asked.operation}
          known={{ wallet_id, ...(asked.operation === 'RenameWallet' && { name: wallet?.name }) }}
          fixed={asked.fixed}
          run={async (request) => {
            const call = operations[asked.operation as 'RegisterAddress']
            await call(request as Parameters<typeof call>[0])
            setAsked(undefined)
            setVersion((count) => count + 1)
            // Where the result is seen.
            if (['RegisterContract', 'ImportAsset'].includes(asked.operation))
              router.go(pathTo('wallets', chainId(chain), wallet_id, 'balances'))
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}
