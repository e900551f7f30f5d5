// Lite servers of TON from a global config or as `host:port:key`. They become ordinary nodes here, so that nothing after this file
// knows of the other forms.

import { readFileSync, statSync } from 'node:fs'
import { parseLiteServer } from './lite-server-text.ts'
import { ConfigError, type Problem, shownWord } from './problem.ts'
import type { ChainsSettings, TonSettings } from './sections/chains.ts'

type TonNetwork = TonSettings['networks'][string]
type TonUpstream = TonNetwork['upstreams'][number]

// The key of a lite server and a hash have the same form.
const bytes32 = /^[A-Za-z0-9+/]{43}=$/
const mostBytes = 1_048_576

/**
 * The chains with the lite servers of global configs and of `host:port:key` as ordinary nodes. What a global config
 * holds may change while the configuration stays the same: a reload compares nodes by what they are opened with.
 */
export const withLiteServers = (chains: ChainsSettings): ChainsSettings =>
  Object.fromEntries(
    Object.entries(chains).map(([name, chain]) => [
      name,
      chain.kind === 'ton' ? { ...chain, networks: expandAll(name, chain.networks) } : chain,
    ]),
  )

/** The global configs that cannot be used, and why. */
export const globalConfigProblems = (chains: ChainsSettings): Problem[] =>
  Object.entries(chains).flatMap(([name, chain]) =>
    chain.kind !== 'ton'
      ? []
      : Object.entries(chain.networks).flatMap(([network, { global_config }]) => {
          if (global_config === undefined) return []
          try {
            readGlobalConfig(global_config, keyOf(name, network))
            return []
          } catch (error) {
            if (error instanceof ConfigError) return [...error.problems]
            throw error
          }
        }),
  )

const keyOf = (chain: string, network: string): string =>
  `chains.${chain}.networks.${network}.global_config`

const expandAll = (chain: string, networks: TonSettings['networks']): TonSettings['networks'] =>
  Object.fromEntries(
    Object.entries(networks).map(([name, network]) => [name, expand(network, keyOf(chain, name))]),
  )

function expand({ global_config, ...network }: TonNetwork, key: string): TonNetwork {
  const found = global_config === undefined ? undefined : readGlobalConfig(global_config, key)
  const trusted_key_block = network.trusted_key_block ?? found?.trusted_key_block
  return {
    ...network,
    upstreams: [...network.upstreams.map(splitKey), ...(found?.upstreams ?? [])],
    ...(trusted_key_block !== undefined && { trusted_key_block }),
  }
}

function splitKey(upstream: TonUpstream): TonUpstream {
  const found = parseLiteServer(upstream.url)
  return found ? { ...upstream, ...found } : upstream
}

type Found = { upstreams: TonUpstream[]; trusted_key_block: string | undefined }

/** Reads the lite servers and the first trusted key block of a global config, in the form that TON publishes. */
function readGlobalConfig(path: string, name: string): Found {
  const refuse = (reason: string, cause?: unknown): never => {
    const message = `\`${name}\` is ${shownWord(path)}, but ${reason}.`
    throw new ConfigError([{ message, key: name }], { cause })
  }
  const { liteservers, validator } = readJson(path, refuse)
  if (!Array.isArray(liteservers) || liteservers.length === 0)
    return refuse('it names no `liteservers`')
  const upstreams = liteservers.map(
    (entry, index): TonUpstream =>
      readServer(entry) ??
      refuse(`\`liteservers[${index}]\` has no \`ip\`, \`port\` and \`id.key\` of ed25519`),
  )
  const { init_block } = objectOf(validator)
  const trusted_key_block = init_block === undefined ? undefined : readBlock(init_block)
  if (init_block !== undefined && trusted_key_block === undefined)
    return refuse('`validator.init_block` is not the name of a masterchain block')
  return { upstreams, trusted_key_block }
}

function readJson(
  path: string,
  refuse: (reason: string, cause?: unknown) => never,
): Record<string, unknown> {
  let text: string
  try {
    if (statSync(path).size > mostBytes) return refuse(`it is larger than ${mostBytes} bytes`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return refuse(`it cannot be read (${(error as NodeJS.ErrnoException).code})`, error)
  }
  try {
    return objectOf(JSON.parse(text))
  } catch (error) {
    return refuse('it is no JSON', error)
  }
}

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const isWithin = (value: unknown, least: number, most: number): value is number =>
  Number.isInteger(value) && Number(value) >= least && Number(value) <= most

function readServer(entry: unknown): TonUpstream | undefined {
  const { ip, port, id } = objectOf(entry)
  const { '@type': type, key: text } = objectOf(id)
  // A signed number, because TL has no other; some files have it unsigned.
  if (!isWithin(ip, -(2 ** 31), 2 ** 32 - 1) || !isWithin(port, 1, 65_535)) return undefined
  if (type !== 'pub.ed25519' || typeof text !== 'string' || !bytes32.test(text)) return undefined
  const host = [24, 16, 8, 0].map((shift) => (ip >>> shift) & 0xff).join('.')
  return {
    url: `tcp://${host}:${port}`,
    ...{ kind: 'liteserver', key: text, headers: {}, priority: 0, v3: false },
  }
}

function readBlock(block: unknown): string | undefined {
  const { workchain, seqno, root_hash, file_hash } = objectOf(block)
  const hashes = [root_hash, file_hash].map((hash) =>
    typeof hash === 'string' && bytes32.test(hash)
      ? Buffer.from(hash, 'base64').toString('hex')
      : undefined,
  )
  if (workchain !== -1 || !isWithin(seqno, 0, 2 ** 32 - 1) || hashes.includes(undefined))
    return undefined
  return [seqno, ...hashes].join(':')
}
