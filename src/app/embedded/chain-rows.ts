import type { ChainKeeper } from './chain-keeper.ts'

/** One local chain for the banner. */
export type ChainRow = {
  chain: string
  node: string
  block: string
  url: string
}

const nodes: Readonly<Record<string, string>> = {
  c: 'anvil: EVM',
  q: 'anvil: rollup',
  t: 'TON executor',
  s: 'Sui simulator, no Move VM',
  p: 'Asset Hub runtime',
}

type Status = {
  chains: Record<
    string,
    {
      nodes?: Record<string, { head: number | null }>
      tracking?: { head?: number | null }
    }
  >
}

/** The local chains with their newest blocks, as the service sees them. */
export async function chainRows(
  { facts, failed }: Pick<ChainKeeper, 'facts' | 'failed'>,
  admin_url: string | undefined,
): Promise<ChainRow[]> {
  // Without the operator's address the banner shows no blocks, and nothing waits.
  const status =
    admin_url === undefined
      ? undefined
      : await fetch(new URL('/status', admin_url), { signal: AbortSignal.timeout(2_000) })
          .then((answer) => answer.json() as Promise<Status>)
          .catch(() => undefined)
  const block = (tag: string): string => {
    const { nodes: pools, tracking } = status?.chains[tag] ?? {}
    return `${Object.values(pools ?? {})[0]?.head ?? tracking?.head ?? '-'}`
  }
  return [
    ...Object.entries(facts).map(([tag, { node_url }]) => ({
      chain: tag.toUpperCase(),
      node: nodes[tag] ?? '',
      block: block(tag),
      url: node_url,
    })),
    ...Object.entries(failed).map(([tag, reason]) => ({
      chain: tag.toUpperCase(),
      node: nodes[tag] ?? '',
      block: '-',
      url: `not running: ${reason}`,
    })),
  ].sort((a, b) => order.indexOf(a.chain) - order.indexOf(b.chain))
}

const order = ['C', 'Q', 'T', 'S', 'P']
