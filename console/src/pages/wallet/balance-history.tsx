import { useMemo } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Chart } from '../../components/chart.tsx'
import { Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { balanceLine } from '../../lib/balance-lines.ts'
import { type Chain, serviceOf } from '../../lib/chains.ts'
import { type Asset, unitOf } from '../../lib/records.ts'
import { useResource } from '../../lib/use-resource.ts'

/** How many points are read: a screen does not show more. */
const maxPoints = 1_000

/** The balance of an asset of a wallet over time. `version` changes when it may have changed. */
export function BalanceHistory(props: {
  chain: Chain
  wallet_id: string
  asset: Asset
  version: unknown
}) {
  const { chain, wallet_id, asset } = props
  const { on } = useAccount()
  const unit = unitOf(chain, asset.token_address, asset.asset_metadata)
  const loaded = useResource(
    async (signal) => {
      const points = []
      let page_token = ''
      do {
        const request = { wallet_id, page_size: 100, ...assetFields(chain, asset) }
        const answer = await on(chain).ListBalanceHistory(
          { ...request, ...(page_token && { page_token }) },
          { signal },
        )
        points.push(...answer.points)
        page_token = answer.pagination.next_page_token
      } while (page_token && points.length < maxPoints)
      return points
    },
    [props.version],
  )
  const line = useMemo(() => loaded.data && balanceLine(loaded.data, unit.decimals), [loaded.data])
  if (!line)
    return loaded.loading ? (
      <Skeleton lines={4} />
    ) : (
      <Problem error={loaded.error} onRetry={loaded.reload} />
    )
  if (line.times.length === 0) return null
  const { times, values, texts } = line
  return (
    <Panel>
      <Chart
        title="Balance after each transfer"
        times={times}
        series={[{ title: unit.symbol, values, texts }]}
      />
    </Panel>
  )
}

/** How a request names an asset. */
function assetFields(chain: Chain, { asset_type, token_address, asset_metadata }: Asset) {
  const type = asset_type as 'ASSET_TYPE_C'
  if (serviceOf(chain) !== 'c') return { asset_type: type, ...(token_address && { token_address }) }
  const token = asset_metadata?.erc20 ?? asset_metadata?.erc721 ?? asset_metadata?.erc1155
  return {
    asset_type: type,
    ...(token && { contract_address: token.contract_address }),
    ...(token && 'token_id' in token && { token_id: token.token_id }),
  }
}
