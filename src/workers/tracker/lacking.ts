import type { BlockContent, ChainBlock } from '../../chains/chain.ts'

// The column and the log line are bounded: a block may contain thousands of undecodable
// transactions.
const longest = 500

/** What is not known of a block, as text: data that no node has, or transactions that cannot be decoded. */
export function lacksOf(
  { lacks }: Pick<ChainBlock, 'lacks'>,
  { undecoded = [] }: Pick<BlockContent, 'undecoded'>,
): string | undefined {
  if (undecoded.length === 0) return lacks
  const named = undecoded.map(({ hash, reason }) => `${hash.toString('hex')} (${reason})`)
  const text = `cannot decode ${undecoded.length} transactions: ${named.join(', ')}`
  return (lacks === undefined ? text : `${lacks}; ${text}`).slice(0, longest)
}
