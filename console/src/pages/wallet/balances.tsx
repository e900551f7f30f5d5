import { useState } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { useLiveReload } from '../../app/use-live.ts'
import { Action } from '../../components/action.tsx'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import { Amount, Badge, Id } from '../../components/text.tsx'
import { assetTypes, type Chain, isEvm } from '../../lib/chains.ts'
import { formatConstant } from '../../lib/format.ts'
import { type Asset, unitOf } from '../../lib/records.ts'
import { useResource } from '../../lib/use-resource.ts'
import { BalanceHistory } from './balance-history.tsx'
import { TrackedTokens } from './tracked-tokens.tsx'

/** The balances of a wallet, summed over its addresses. */
export function Balances({ chain, wallet_id }: { chain: Chain; wallet_id: string }) {
  const { on, may } = useAccount()
  const operations = on(chain)
  const types = assetTypes(chain)
  const loaded = useResource(async (signal) => {
    const lists = await Promise.all(
      types.map((asset_type) =>
        operations.ListAssets(
          {
            wallet_id,
            asset_type: asset_type as 'ASSET_TYPE_C',
            is_aggregated: true,
            exclude_zero_balance: asset_type !== types[0],
            page_size: 100,
          },
          { signal },
        ),
      ),
    )
    return lists.flatMap(({ assets }) => assets as unknown as Asset[])
  }, [])
  useLiveReload(
    ({ type, chain: name }) => name === chain.chain && type !== 'head' && type !== 'delivery',
    loaded.reload,
  )
  const [chosen, setChosen] = useState<string | undefined>()
  const shown = loaded.data?.find((asset) => assetKey(asset) === chosen) ?? loaded.data?.[0]
  const refresh = () =>
    Promise.all(
      types.map((asset_type) =>
        operations.RefreshAssetBalances({ wallet_id, asset_type: asset_type as 'ASSET_TYPE_C' }),
      ),
    )
  const history = shown && (
    <BalanceHistory
      key={assetKey(shown)}
      chain={chain}
      wallet_id={wallet_id}
      asset={shown}
      version={loaded.data}
    />
  )
  const list = (
    <Panel
      flush
      title="Balances"
      actions={
        may('RefreshAssetBalances', chain) && (
          <Action small run={refresh} onDone={loaded.reload}>
            Read from the chain again
          </Action>
        )
      }
    >
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!loaded.data && loaded.loading && <Skeleton />}
      {loaded.data?.length === 0 && (
        <Empty title="No balance yet.">
          <p>
            Balances of the wallet's addresses are shown once their blocks have the confirmations
            that the wallet waits for.
          </p>
        </Empty>
      )}
      {loaded.data && loaded.data.length > 0 && (
        <Table
          label="Balances"
          rows={loaded.data}
          keyOf={assetKey}
          columns={[
            {
              title: 'Asset',
              cell: (asset) => <span class="cell-text">{nameOf(asset, chain)}</span>,
            },
            {
              title: 'Balance',
              align: 'end',
              cell: (asset) => (
                <Amount
                  value={asset.balance}
                  unit={unitOf(chain, asset.token_address, asset.asset_metadata)}
                />
              ),
            },
            {
              title: 'History',
              hide: 'narrow',
              cell: (asset) => (
                <button
                  type="button"
                  class="button small quiet"
                  aria-pressed={asset === shown}
                  onClick={() => setChosen(assetKey(asset))}
                >
                  Show<span class="hidden-text"> the history of {nameOf(asset, chain)}</span>
                </button>
              ),
            },
            {
              title: 'Type',
              hide: 'narrow',
              cell: ({ asset_type }) => formatConstant(asset_type, 'ASSET_TYPE_'),
            },
            {
              title: 'Contract',
              hide: 'medium',
              cell: (asset) => <Id value={contractOf(asset)} />,
            },
            {
              title: '',
              cell: ({ is_unreadable }) =>
                is_unreadable ? (
                  <Badge
                    tone="warn"
                    title="The contract fails when it is asked; this is the last value."
                  >
                    not readable
                  </Badge>
                ) : null,
            },
          ]}
        />
      )}
    </Panel>
  )
  return (
    <div class="stack">
      {history}
      {list}
      {isEvm(chain) && may('ListContracts', chain) && <TrackedTokens chain={chain} />}
    </div>
  )
}

const contractOf = ({ token_address, asset_metadata }: Asset): string =>
  token_address ??
  asset_metadata?.erc20?.contract_address ??
  asset_metadata?.erc721?.contract_address ??
  asset_metadata?.erc1155?.contract_address ??
  ''

const nameOf = (asset: Asset, chain: Chain): string =>
  asset.asset_metadata?.erc20?.name ??
  asset.asset_metadata?.erc721?.name ??
  (contractOf(asset) ? 'Token' : `Coin of ${chain.chain}`)

const assetKey = (asset: Asset): string =>
  `${asset.asset_type} ${contractOf(asset)} ${asset.asset_metadata?.erc721?.token_id ?? asset.asset_metadata?.erc1155?.token_id ?? ''}`
