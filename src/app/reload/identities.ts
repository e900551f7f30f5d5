import type { Chain } from '../../chains/chain.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'

/** A network that is about to be tracked. */
export type NewNetwork = NetworkName & { nodes: Pick<Chain, 'identity'>; isShared: boolean }

/** A network with the identity that its nodes reported. */
export type Identified = NetworkName & { identity: string | null }

const askMs = 10_000

/**
 * Refuses a configuration in which nodes have the identity of another network, or not that of the rows of their own.
 * Nodes that do not answer are not waited for: the tracker decides when they do.
 */
export async function checkIdentities(
  config: Pick<Config, 'source'>,
  networks: readonly NewNetwork[],
  /** Those that are configured and stay; and the stored identity of each network. */
  known: { others: readonly NetworkName[]; stored: readonly Identified[] },
): Promise<void> {
  const asked = await Promise.all(
    networks.map(async (network) => ({
      network,
      identity: await network.nodes.identity(AbortSignal.timeout(askMs)).catch(() => undefined),
    })),
  )
  const storedOf = (name: NetworkName) => known.stored.find((one) => isSame(one, name))?.identity
  const holders = known.others.map((name) => ({ name, identity: storedOf(name) }))
  const problems: Problem[] = []
  for (const { network, identity } of asked) {
    if (identity === undefined) continue
    const own = storedOf(network)
    if (own && own !== identity) {
      const detail = `has nodes of another chain (${identity}) than its stored blocks (${own}). Name nodes of that chain, or another network.`
      problems.push(problemOf(config, network, detail))
      continue
    }
    if (network.isShared) continue
    const other = holders.find((one) => one.identity === identity && !isSame(one.name, network))
    if (other) {
      const detail = `has the nodes of ${textOf(other.name)} (${identity}), so its transfers would be tracked twice. Name other nodes, or set \`shared: true\` on the chain.`
      problems.push(problemOf(config, network, detail))
    } else holders.push({ name: network, identity })
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

const isSame = (one: NetworkName, other: NetworkName): boolean =>
  one.chain === other.chain && one.network === other.network

const textOf = ({ chain, network }: NetworkName): string => `${chain}/${network}`

/** A problem of a network, at the first key of it that a source has set. */
function problemOf({ source }: Pick<Config, 'source'>, at: NetworkName, detail: string): Problem {
  const key = `chains.${at.chain}.networks.${at.network}`
  const [, origin] = Object.entries(source.origins).find(([path]) => path.startsWith(key)) ?? []
  const place: Pick<Problem, 'file' | 'line'> =
    origin?.from === 'file'
      ? { file: origin.file, ...(origin.line !== undefined && { line: origin.line }) }
      : {}
  const where = place.file === undefined ? '' : ` in ${place.file}`
  const line = place.line === undefined ? '' : ` line ${place.line}`
  return { message: `\`${key}\`${where}${line} ${detail}`, key, ...place }
}
