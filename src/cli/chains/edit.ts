import { isMap } from 'yaml'
import { parseLiteServer } from '../../app/config/lite-server-text.ts'
import type { ChainSettings } from '../../app/config/sections/chains.ts'
import { openInstallationDatabase } from '../../app/installation.ts'
import { findKnownChain, knownChainNames, proposedSettings } from '../../chains/evm/known-chains.ts'
import { silentLog } from '../../lib/log.ts'
import { countWallets } from '../../storage/wallets/wallets.ts'
import { chainText, readChain } from '../chain-tools.ts'
import { CliError, usageError } from '../cli-error.ts'
import { editConfig } from '../config/edit.ts'
import { readConfig } from '../configuration.ts'
import { notesOf } from '../init/named-chains.ts'
import { askNode } from '../nodes/ask-node.ts'
import { askNodes } from '../nodes/ask-nodes.ts'
import type { NodeKind } from '../nodes/rpc.ts'
import { type GlobalOptions, note, type Shell } from '../shell.ts'

type AddOptions = GlobalOptions & {
  variant?: string
  url?: string[]
  network?: string
  shared?: boolean
}

// The family of each variant. C and Q share one.
const kinds: Readonly<Record<string, ChainSettings['kind']>> = {
  C: 'evm',
  Q: 'evm',
  T: 'ton',
  S: 'sui',
  P: 'polkadot',
}

const proposedVariants = { evm: 'C', ton: 'T', sui: 'S', polkadot: 'P' } as const

/** Adds a chain to the configuration, or a network to a chain. */
export async function addChain(shell: Shell, name: string, options: AddOptions): Promise<void> {
  const { url: urls = [] } = options
  if (urls.length === 0)
    throw usageError(
      `Name the nodes of the chain, such as "portolan chains add ${name} https://…".`,
    )
  const at = readChain(name)
  const { chain } = at
  const configured = readConfig(shell, options).chains[chain]
  // A chain with the name of a variant, such as `c`, needs no --variant.
  const given = lettersOf(options.variant ?? (chain.length === 1 ? chain : ''))
  if (options.variant !== undefined && given.length === 0)
    throw usageError('--variant must be C, Q, T, S, P, or C,Q.')
  const kind = configured?.kind ?? (given[0] ? kinds[given[0]] : await findKind(urls))
  if (kind === undefined)
    throw usageError(
      'No node says what it is. Name the variant of the chain: --variant C, Q, T, S, P, or C,Q.',
    )
  // Asked before the file is changed, so that a wrong address is noticed. A node that does not
  // answer is taken.
  const answers = await askNodes(shell, kind, urls)
  const chain_id = answers.find((answer) => answer?.chain_id !== undefined)?.chain_id
  if (answers.some((answer) => answer?.chain_id !== undefined && answer.chain_id !== chain_id))
    throw new CliError('These nodes are of different chains. Nothing was changed.')
  const known =
    kind === 'evm' && typeof chain_id === 'number' ? findKnownChain(chain_id) : undefined
  if (known && given.length === 0 && known.chain !== chain && knownChainNames().has(chain))
    throw new CliError(
      `The nodes are on chain ${known.chain_id} (${known.title}), not on ${chain}. Nothing was changed.`,
    )
  const proposed = known?.chain === chain ? known.network : 'mainnet'
  const network = at.network ?? options.network ?? proposed
  if (configured?.networks[network])
    throw new CliError(
      `${chain}/${network} is configured. Add nodes to it with "portolan nodes add".`,
    )
  const letters = given.length > 0 ? given : [proposedVariants[kind]]
  const notes = known ? notesOf(known) : []
  for (const line of notes) note(shell, `  ${line}`)
  const entry = {
    ...(known && proposedSettings(known)),
    ...(chain_id !== undefined && { chain_id }),
    upstreams: urls.map((url) => ({ url })),
  }
  await editConfig(shell, options, (document) => {
    if (document.contents === null) document.contents = document.createNode({})
    const chains = document.get('chains')
    // An empty section, or `{}`, in which everything would be on one line.
    if (!isMap(chains) || chains.items.length === 0) document.set('chains', document.createNode({}))
    const node = document.createNode(entry)
    if (notes.length > 0) node.commentBefore = notes.map((line) => ` ${line}`).join('\n')
    if (configured && document.hasIn(['chains', chain]))
      document.setIn(['chains', chain, 'networks', network], node)
    else {
      document.setIn(
        ['chains', chain],
        document.createNode({
          ...(letters.length === 1 ? { variant: letters[0] } : { variants: letters }),
          ...(options.shared && { shared: true }),
          ...(network !== 'mainnet' && { default_network: network }),
          networks: {},
        }),
      )
      document.setIn(['chains', chain, 'networks'], document.createNode({ [network]: node }))
    }
  })
}

/** The family of the first node that says what it is. */
async function findKind(urls: readonly string[]): Promise<NodeKind | undefined> {
  for (const url of urls) {
    if (parseLiteServer(url)) return 'ton'
    // The scheme excludes families: nodes of Polkadot are asked over WebSocket, those of TON and Sui over HTTP.
    const kinds: readonly NodeKind[] = /^wss?:/.test(url)
      ? ['evm', 'polkadot']
      : /^https?:/.test(url)
        ? ['evm', 'ton', 'sui']
        : []
    const said = await Promise.allSettled(kinds.map((kind) => askNode({ kind, url })))
    const found = kinds.find((_, index) => said[index]?.status === 'fulfilled')
    if (found) return found
  }
  return undefined
}

/** Removes a chain, or one network of it, from the configuration. */
export async function removeChain(
  shell: Shell,
  name: string,
  options: GlobalOptions & { force?: boolean },
): Promise<void> {
  const at = readChain(name)
  const settings = readConfig(shell, options).chains[at.chain]
  if (!settings || (at.network !== undefined && !settings.networks[at.network]))
    throw new CliError(`${chainText(at)} is not configured.`)
  const isLast = Object.keys(settings.networks).length === 1
  if (at.network === settings.default_network && !isLast)
    throw new CliError(
      `${chainText(at)} is the default network of ${at.chain}. Set another default_network first, or remove the chain.`,
    )
  if (!options.force) {
    const wallets = await walletsOf(shell, options, at)
    if (wallets > 0)
      throw new CliError(
        `${chainText(at)} has ${wallets} wallet${wallets === 1 ? '' : 's'}, which would not be tracked any more. What is stored of them can still be read. Use --force to remove it.`,
      )
  }
  // The last network takes its chain along: a chain without networks is not valid.
  const path = at.network === undefined || isLast ? [at.chain] : [at.chain, 'networks', at.network]
  await editConfig(shell, options, (document) => {
    if (!document.deleteIn(['chains', ...path]))
      throw new CliError(`${chainText(at)} is not in the file: an environment variable sets it.`)
    const chains = document.get('chains')
    if (isMap(chains) && chains.items.length === 0) document.set('chains', document.createNode({}))
  })
}

const lettersOf = (text: string): string[] =>
  text
    .split(',')
    .map((letter) => letter.trim().toUpperCase())
    .filter((letter) => Object.hasOwn(kinds, letter))

async function walletsOf(
  shell: Shell,
  options: GlobalOptions,
  at: { chain: string; network?: string },
): Promise<number> {
  // Counted in the database, because the service need not run.
  const config = readConfig(shell, options)
  const { env, cwd } = shell
  const { db, stop } = await openInstallationDatabase({ config, env, cwd, log: silentLog })
  try {
    return await countWallets(db, at)
  } finally {
    await stop()
  }
}
