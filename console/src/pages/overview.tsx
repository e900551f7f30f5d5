import { useMemo, useRef, useState } from 'preact/hooks'
import { useAccount } from '../app/context.ts'
import { useLive, useLiveReload } from '../app/use-live.ts'
import { Empty, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { Table } from '../components/table.tsx'
import { Choice } from '../components/tabs.tsx'
import { Amount, Badge, Id, Time } from '../components/text.tsx'
import { type Chain, chainId, chainTitle, familyName, hasWallets } from '../lib/chains.ts'
import { formatCount, formatDuration, toTime } from '../lib/format.ts'
import { type Transfer, transactionOf, unitOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'
import { Metrics } from './overview/metrics.tsx'
import { Problems } from './overview/problems.tsx'

/** What is happening on the chains, and what needs attention. */
export function Page() {
  const account = useAccount()
  const [range, setRange] = useState('1')
  const isAdmin = account.may('ListMetrics')
  return (
    <>
      <PageHeader
        title="Overview"
        about={`${account.organization.name}, ${account.chains.length} networks`}
        actions={
          isAdmin && (
            <Choice
              label="Time range"
              options={[
                ['1', 'Hour'],
                ['6', '6 hours'],
                ['24', 'Day'],
              ]}
              value={range}
              onChange={setRange}
            />
          )
        }
      />
      <div class="stack">
        {isAdmin && <Problems />}
        {isAdmin && <Metrics hours={Number(range)} />}
        <Chains />
        <Recent />
      </div>
    </>
  )
}

const healths = { ok: 'good', stalled: 'bad', failing: 'bad', idle: 'plain' } as const

function Chains() {
  const { client, may } = useAccount()
  const loaded = useResource(
    (signal) => client.admin.ListChains({}, { signal }).then(({ chains }) => chains),
    [],
  )
  const [heads, setHeads] = useState<Readonly<Record<string, { block: string; time: string }>>>({})
  useLive((event) => {
    if (event.type !== 'head') return
    const { block_number, block_time } = event.data
    setHeads((last) => ({
      ...last,
      [`${event.chain}/${event.network}`]: { block: String(block_number), time: block_time ?? '' },
    }))
  })
  // Health, lag and counts are read again: at once where something happened, else now and then.
  useLiveReload(({ type }) => type === 'problem' || type === 'reorganization', loaded.reload)
  useLiveReload(({ type }) => type === 'head', loaded.reload, 15_000)
  const first = useRef<readonly Chain[] | undefined>(undefined)
  first.current ??= loaded.data
  const headOf = (chain: Chain) => heads[`${chain.chain}/${chain.network}`]
  /** The mean time between the blocks that came while the page was open. */
  const intervalOf = (chain: Chain): number | null => {
    const head = headOf(chain)
    const start = first.current?.find((one) => chainId(one) === chainId(chain))
    const [from, to] = [toTime(start?.block_time), toTime(head?.time)]
    const blocks = Number(BigInt(head?.block ?? 0) - BigInt(start?.block_number ?? 0))
    return from !== undefined && to !== undefined && blocks > 0 ? (to - from) / blocks : null
  }
  const showsLag = may('ListNodes')
  return (
    <Panel title="Chains" flush>
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!loaded.data && loaded.loading && <Skeleton lines={5} />}
      {loaded.data && (
        <Table
          label="Chains"
          rows={loaded.data}
          keyOf={chainId}
          columns={[
            {
              title: 'Chain',
              cell: (chain) =>
                hasWallets(chain) ? (
                  <Link to={pathTo('wallets', chainId(chain))}>{chainTitle(chain)}</Link>
                ) : (
                  chainTitle(chain)
                ),
            },
            { title: 'Family', hide: 'narrow', cell: ({ kind }) => familyName(kind) },
            { title: 'Network', hide: 'medium', cell: ({ network }) => network },
            {
              title: 'Health',
              cell: ({ health, problem }) => (
                <Badge tone={healths[health as keyof typeof healths] ?? 'plain'} title={problem}>
                  {health}
                </Badge>
              ),
            },
            {
              title: 'Block',
              align: 'end',
              cell: (chain) => (
                <span class="mono">{formatCount(headOf(chain)?.block ?? chain.block_number)}</span>
              ),
            },
            {
              title: 'Age',
              align: 'end',
              hide: 'narrow',
              cell: (chain) => <Time at={headOf(chain)?.time || chain.block_time} />,
            },
            {
              title: 'Block time',
              align: 'end',
              hide: 'medium',
              cell: (chain) => formatDuration(intervalOf(chain)),
            },
            ...(showsLag
              ? [
                  {
                    title: 'Lag',
                    align: 'end' as const,
                    hide: 'narrow' as const,
                    cell: ({ lag_blocks }: Chain) => formatCount(lag_blocks),
                  },
                  {
                    title: 'Reorganized',
                    align: 'end' as const,
                    hide: 'medium' as const,
                    cell: ({ reorganization_count }: Chain) => formatCount(reorganization_count),
                  },
                  {
                    title: 'Gaps',
                    align: 'end' as const,
                    hide: 'narrow' as const,
                    cell: ({ gap_count }: Chain) => formatCount(gap_count),
                  },
                ]
              : []),
          ]}
        />
      )}
    </Panel>
  )
}

type Seen = { key: string; chain: Chain; transfer: Transfer; kind: string; time: string }

const recentRows = 12

/** The newest transfers of all chains: those of the lists first, then as they arrive. */
function Recent() {
  const { chains, on } = useAccount()
  const [fresh, setFresh] = useState<readonly Seen[]>([])
  const tracked = useMemo(() => chains.filter(hasWallets), [chains])
  const stored = useResource(async (signal) => {
    const lists = await Promise.all(tracked.map((chain) => newestOf(chain, on(chain), signal)))
    return lists
      .flat()
      .sort((a, b) => b.time.localeCompare(a.time))
      .slice(0, recentRows)
  }, [])
  useLiveReload(({ type }) => type === 'retraction', stored.reload)
  useLive((event) => {
    if (event.type !== 'transfer' && event.type !== 'confirmation') return
    const chain = chains.find((one) => one.chain === event.chain && one.network === event.network)
    if (!chain) return
    const rows = (event.data.transfers as unknown as Transfer[]).map((transfer) =>
      seen(chain, transfer, event.type),
    )
    setFresh((last) => {
      const keys = new Set(rows.map(({ key }) => key))
      return [...rows, ...last.filter(({ key }) => !keys.has(key))].slice(0, recentRows)
    })
  })
  const known = new Set(fresh.map(({ key }) => key))
  const rows = [...fresh, ...(stored.data ?? []).filter(({ key }) => !known.has(key))].slice(
    0,
    recentRows,
  )
  return (
    <Panel title="Latest transfers" flush>
      <Problem error={stored.error} onRetry={stored.reload} />
      {rows.length === 0 && stored.loading && <Skeleton lines={5} />}
      {rows.length === 0 && !stored.loading && (
        <Empty title="No transfer yet.">
          <p>
            Register a wallet with an address, and its transfers appear here as they happen.{' '}
            <Link to="wallets">Wallets</Link>
          </p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Latest transfers"
          rows={rows}
          keyOf={({ key }) => key}
          isNew={({ key }) => known.has(key)}
          columns={[
            { title: 'Time', cell: ({ time }) => <Time at={time} /> },
            { title: 'Chain', hide: 'narrow', cell: ({ chain }) => chainTitle(chain) },
            {
              title: 'Amount',
              align: 'end',
              cell: ({ transfer, chain }) => (
                <Amount
                  value={transfer.value}
                  unit={unitOf(chain, transfer.token_address, transfer.transfer_metadata)}
                  sign={transfer.direction?.endsWith('INCOMING') ? '+' : '−'}
                />
              ),
            },
            {
              title: 'Wallet',
              hide: 'medium',
              cell: ({ transfer, chain }) => (
                <Id
                  value={transfer.wallet_id}
                  to={pathTo('wallets', chainId(chain), transfer.wallet_id)}
                />
              ),
            },
            {
              title: 'Transaction',
              cell: ({ transfer, chain }) => (
                <Id
                  value={transactionOf(transfer)}
                  to={pathTo('transfers', chainId(chain), transactionOf(transfer))}
                />
              ),
            },
          ]}
        />
      )}
    </Panel>
  )
}

const seen = (chain: Chain, transfer: Transfer, kind: string): Seen => ({
  key: `${chainId(chain)} ${transfer.transfer_id} ${transfer.wallet_id}`,
  chain,
  transfer,
  kind,
  time: transfer.transfer_time,
})

/** Transfers are listed by wallet; the newest wallets stand for the chain until events arrive. */
async function newestOf(
  chain: Chain,
  operations: ReturnType<ReturnType<typeof useAccount>['on']>,
  signal: AbortSignal,
): Promise<Seen[]> {
  const { wallets } = await operations.ListWallets({ page_size: 3 }, { signal })
  const lists = await Promise.all(
    wallets.map(({ wallet_id }) =>
      operations.ListTransfers({ wallet_id, page_size: recentRows }, { signal }),
    ),
  )
  return lists.flatMap(({ transfers }) =>
    (transfers as unknown as Transfer[]).map((transfer) => seen(chain, transfer, 'transfer')),
  )
}
