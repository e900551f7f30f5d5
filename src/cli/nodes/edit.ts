// Adds and removes nodes in the configuration file. The document is edited and not written anew, so that comments and order
// stay. A running service reloads it and replaces only what has changed.

import { isMap, isSeq } from 'yaml'
import { isLiteServer } from '../../app/config/lite-server-text.ts'
import type { ChainSettings } from '../../app/config/sections/chains.ts'
import { type ChainName, chainText, readChain } from '../chain-tools.ts'
import { CliError, usageError } from '../cli-error.ts'
import { editConfig } from '../config/edit.ts'
import { readConfig } from '../configuration.ts'
import type { GlobalOptions, Shell } from '../shell.ts'
import { askNodes } from './ask-nodes.ts'

/** Adds a node to a network of the configuration. */
export async function addNode(
  shell: Shell,
  name: string,
  url: string,
  options: GlobalOptions & { name?: string; priority?: string },
): Promise<void> {
  const { at, settings, path } = findNetwork(shell, name, options)
  const { priority: text } = options
  const priority = text === undefined ? undefined : Number(text)
  if (priority !== undefined && !Number.isInteger(priority))
    throw usageError('--priority must be a whole number.')
  const { chain_id, upstreams } = settings.networks[at.network]!
  if (upstreams.some((node) => node.url === url))
    throw new CliError(`${chainText(at)} has this node already.`)
  // Before the file is changed. A node that is down is accepted: it may be added before it runs.
  const [answer] = await askNodes(shell, settings.kind, [url])
  if (chain_id !== undefined && answer?.chain_id !== undefined && answer.chain_id !== chain_id)
    throw new CliError(
      `The node is of chain ${answer.chain_id}, and ${chainText(at)} is ${chain_id}. Nothing was changed.`,
    )
  const isLite = settings.kind === 'ton' && (isLiteServer(url) || url.startsWith('tcp://'))
  const node = {
    url,
    ...(isLite && { kind: 'liteserver' }),
    ...(options.name !== undefined && { name: options.name }),
    ...(priority !== undefined && { priority }),
  }
  await editConfig(shell, options, (document) => {
    const nodes = document.getIn(path)
    if (!isSeq(nodes)) throw notInFile(at)
    nodes.add(document.createNode(node))
  })
}

/** Removes a node from a network of the configuration. */
export async function removeNode(
  shell: Shell,
  name: string,
  node: string,
  options: GlobalOptions,
): Promise<void> {
  const { at, path } = findNetwork(shell, name, options)
  await editConfig(shell, options, (document) => {
    const nodes = document.getIn(path)
    if (!isSeq(nodes)) throw notInFile(at)
    const index = nodes.items.findIndex(
      // By name or by address, as `portolan chains` and the file show it.
      (item) => isMap(item) && (item.get('url') === node || item.get('name') === node),
    )
    if (index < 0) throw new CliError(`${chainText(at)} has no such node in the file.`)
    // The schema demands one node; a file without any would not load at the next start.
    if (nodes.items.length === 1)
      throw new CliError(
        `This is the only node of ${chainText(at)}. Add another one first, or use "portolan chains remove".`,
      )
    nodes.delete(index)
  })
}

function findNetwork(
  shell: Shell,
  name: string,
  options: GlobalOptions,
): { at: Required<ChainName>; settings: ChainSettings; path: readonly string[] } {
  const { chain, network } = readChain(name)
  const settings = readConfig(shell, options).chains[chain]
  const at = { chain, network: network ?? settings?.default_network ?? '' }
  if (!settings?.networks[at.network])
    throw new CliError(`${name} is not configured. Add it with "portolan chains add".`)
  return { at, settings, path: ['chains', chain, 'networks', at.network, 'upstreams'] }
}

const notInFile = (at: ChainName): CliError =>
  new CliError(
    `The nodes of ${chainText(at)} are not in the file: an environment variable sets them.`,
  )
