import {
  findKnownChain,
  type KnownChain,
  knownChainNames,
  proposedConfirmations,
  proposedSettings,
} from '../../chains/evm/known-chains.ts'
import { findNearest } from '../../lib/nearest.ts'
import { CliError, usageError } from '../cli-error.ts'
import { type CheckedNode, type NamedChain, type NamedNetwork, urlProblem } from './answers.ts'
import { checkNode } from './check-node.ts'

/** The option whose nodes are named by their chain ids. */
const anyChain = 'node'

/** The nodes that options such as `--base` name, by the name of the chain. */
export type NamedUrls = ReadonlyMap<string, readonly string[]>

/** Reads the options that are names of chains, as Commander left them: `--base https://… --polygon https://…`. */
export function readNamedUrls(words: readonly string[]): NamedUrls {
  const found = new Map<string, string[]>()
  let urls: string[] | undefined
  for (const word of words) {
    if (!word.startsWith('-')) {
      if (!urls) throw usageError(`"${word}" is not expected here. Name its chain, such as --base.`)
      urls.push(word)
      continue
    }
    const equals = word.indexOf('=')
    const name = checkName(equals < 0 ? word : word.slice(0, equals))
    const value = equals < 0 ? '' : word.slice(equals + 1)
    urls = found.get(name) ?? []
    found.set(name, urls)
    if (value !== '') urls.push(value)
  }
  // After all words were read: a chain may be named twice, and its nodes join.
  for (const [name, given] of found) {
    if (given.length === 0) throw usageError(`--${name} needs the address of a node.`)
    const problem = given.map((url) => urlProblem('c', url)).find((text) => text !== undefined)
    if (problem !== undefined) throw usageError(problem)
  }
  return found
}

function checkName(option: string): string {
  const name = option.replace(/^--/, '')
  const names = knownChainNames()
  if (option.startsWith('--') && (name === anyChain || names.has(name))) return name
  const options = ['force', 'output', 'database', anyChain, ...names]
  const near = findNearest(name.replace(/^-/, ''), options)
  const hint = near === undefined ? ' For any EVM chain use --node.' : ` Did you mean --${near}?`
  throw usageError(`Unknown option '${option}'.${hint}`)
}

/** Asks every node which chain it is on, and puts it into the network of that chain. */
export async function nameChains(
  urls: NamedUrls,
  note: (line: string) => void,
): Promise<Record<string, NamedChain>> {
  const chains: Record<string, NamedChain> = {}
  for (const [name, given] of urls)
    for (const node of await Promise.all(given.map((url) => checkNode('c', url)))) {
      // Only EVM nodes have numbers as ids; the other families are options of their own.
      const known = typeof node.chain_id === 'number' ? findKnownChain(node.chain_id) : undefined
      const place = placeOf(name, node, known)
      note(lineOf(place, node, known))
      chains[place.chain] ??= { variant: 'C', networks: {} }
      const { networks } = chains[place.chain]!
      networks[place.network] ??= networkOf(known)
      networks[place.network]!.nodes.push(node)
    }
  return chains
}

type Place = { chain: string; network: string }

/** The place of a node in the configuration: what its chain id says, checked against the name that was given. */
function placeOf(name: string, node: CheckedNode, known: KnownChain | undefined): Place {
  const { host } = new URL(node.url)
  if (name === anyChain) {
    if (known) return known
    // Without an answer and without a name there is nothing to call the chain.
    if (node.chain_id === undefined)
      throw new CliError(
        `${host} does not answer (${node.problem}), so its chain is not known. Name it, such as --base.`,
      )
    return { chain: `chain-${node.chain_id}`, network: 'mainnet' }
  }
  if (known && known.chain !== name)
    throw new CliError(
      `${host} is on chain ${known.chain_id} (${known.title}), not on ${name}. Use --${known.chain}.`,
    )
  return { chain: name, network: known?.network ?? 'mainnet' }
}

const lineOf = ({ chain, network }: Place, node: CheckedNode, known: KnownChain | undefined) => {
  const { host } = new URL(node.url)
  if (node.problem !== undefined) return `! ${chain} ${host} does not answer: ${node.problem}`
  const title = known ? ` (${known.title})` : ''
  return `✓ ${chain}/${network} ${host} is on chain ${node.chain_id}${title}`
}

const networkOf = (known: KnownChain | undefined): NamedNetwork => ({
  nodes: [],
  notes: known ? notesOf(known) : [],
  settings: known ? proposedSettings(known) : {},
})

/** What is known of a network, as comments of the configuration. */
export function notesOf(known: KnownChain): string[] {
  const { title, symbol, blockMs, explorer } = known
  const confirmations = proposedConfirmations(known)
  return [
    `${title}, ${symbol}${blockMs === undefined ? '' : `, a block about every ${blockMs / 1000} s`}.`,
    ...(confirmations === undefined || blockMs === undefined
      ? []
      : [
          `Proposed for wallets and webhooks: confirmation ${confirmations}, about ${Math.round((confirmations * blockMs) / 1000)} s.`,
        ]),
    ...(explorer === undefined ? [] : [`Explorer: ${explorer}`]),
  ]
}
