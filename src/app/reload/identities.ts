import type { NetworkName } from '../../storage/tracking/networks.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'

/** A network whose nodes can be asked which chain they are on. */
export type AskedNetwork = NetworkName & {
  nodes: { identity(signal: AbortSignal): Promise<string> }
}

/** A network that is about to be served or tracked. */
export type NewNetwork = AskedNetwork & { isShared: boolean }

/** A network that is configured and stays. */
export type OtherNetwork = AskedNetwork & {
  /** Whether its settings allow this identity; it is not asked where they do not. */
  mayHave(identity: string): boolean
}

/** A network with the identity that its nodes reported. */
export type Identified = NetworkName & { identity: string | null }

const askMs = 10_000
const askedAtOnce = 16

/**
 * Refuses a configuration in which nodes have the identity of another network, or not that of the rows of their own.
 * Nodes that do not answer are not waited for: the tracker decides when they do. Returns the networks that could not be
 * compared because of that.
 */
export async function checkIdentities(
  config: Pick<Config, 'source'>,
  networks: readonly NewNetwork[],
  known: { others: readonly OtherNetwork[]; stored: readonly Identified[] },
): Promise<{ network: NetworkName; other: NetworkName }[]> {
  const found = await askIdentities(networks)
  const storedOf = (name: NetworkName) => known.stored.find((one) => isSame(one, name))?.identity
  const claims = networks.flatMap((network) => {
    const identity = found.get(network)
    return identity === undefined || network.isShared ? [] : [{ network, identity }]
  })
  // Others with a stored identity, or with settings that exclude the new ones, are not asked.
  const unused = known.others.filter((other) => !storedOf(other))
  const suspects = unused.filter((other) => claims.some(({ identity }) => other.mayHave(identity)))
  const answers = await askIdentities(suspects)
  const holders: (NetworkName & { identity: string | null | undefined })[] = known.others.map(
    (other) => ({ ...nameOf(other), identity: storedOf(other) ?? answers.get(other) }),
  )
  const problems: Problem[] = []
  for (const network of networks) {
    const identity = found.get(network)
    if (identity === undefined) continue
    const own = storedOf(network)
    if (own && own !== identity) {
      const detail = `has nodes of another chain (${identity}) than its stored blocks (${own}). Name nodes of that chain, or another network.`
      problems.push(problemOf(config, network, detail))
      continue
    }
    if (network.isShared) continue
    const other = holders.find(
      (one) => one.identity === identity && !isSame(one, network) && !areBothServices(one, network),
    )
    if (other) {
      const detail = `has the nodes of ${textOf(other)} (${identity}), so its transfers would be tracked twice. Name other nodes, or set \`shared: true\` on the chain.`
      problems.push(problemOf(config, network, detail))
    } else holders.push({ ...nameOf(network), identity })
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return suspects
    .filter((other) => !answers.has(other))
    .flatMap((other) =>
      claims
        .filter(({ identity }) => other.mayHave(identity))
        .map(({ network }) => ({ network: nameOf(network), other: nameOf(other) })),
    )
}

/** Asks networks for their identities, some at a time and all within one time limit. Those that do not answer are left out. */
export async function askIdentities<network extends AskedNetwork>(
  networks: readonly network[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<network, string>> {
  const found = new Map<network, string>()
  const limit = AbortSignal.timeout(askMs)
  const over = signal ? AbortSignal.any([limit, signal]) : limit
  const left = networks.values()
  const askNext = async (): Promise<void> => {
    for (const network of left) {
      if (over.aborted) return
      const identity = await network.nodes.identity(over).catch(() => undefined)
      if (identity !== undefined) found.set(network, identity)
    }
  }
  await Promise.all(Array.from({ length: askedAtOnce }, askNext))
  return found
}

/**
 * `c` and `q` are the services of the specification for wallets and queries. They may have the same nodes, as before
 * chains had names.
 */
const areBothServices = (one: NetworkName, other: NetworkName): boolean =>
  `${one.chain}${other.chain}` === 'cq' || `${one.chain}${other.chain}` === 'qc'

const isSame = (one: NetworkName, other: NetworkName): boolean =>
  one.chain === other.chain && one.network === other.network

const nameOf = ({ chain, network }: NetworkName): NetworkName => ({ chain, network })

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
