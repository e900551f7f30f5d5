import { getSs58AddressInfo } from '@polkadot-api/substrate-bindings'
import { fromHex, hash256, keyBytes, keyText, readUint, toHex } from './bytes.ts'
import type { PolkadotChain } from './chain.ts'
import type { Code } from './code.ts'
import { headerJson } from './header.ts'
import { type Method, RpcError } from './rpc.ts'
import { createOverlay, type State, trieOf } from './state.ts'
import type { StoredBlock } from './store.ts'
import { nibblesOf, proofOf } from './trie.ts'

/** What an endpoint may keep from its clients. */
export type Endpoint = {
  /** States of blocks below are answered as discarded. */
  prunedBelow: number
}

/** Finds blocks and their states as an endpoint shows them; without a hash the best one. */
export function createLookup(chain: PolkadotChain, endpoint: Endpoint) {
  const blockOf = (hash?: string | null): StoredBlock => {
    if (hash === undefined || hash === null) return chain.best()
    const block = chain.find(hash)
    if (!block)
      throw new RpcError(4002, `Client error: UnknownBlock: Header was not found: ${hash}`)
    return block
  }
  const stateOf = (hash?: string | null): State => {
    const block = blockOf(hash)
    const state = block.number < endpoint.prunedBelow ? undefined : chain.stateOf(block)
    if (!state)
      throw new RpcError(
        4003,
        `Client error: Api called for an unknown Block: State already discarded for ${block.hash}`,
      )
    return state
  }
  return { blockOf, stateOf }
}

/** The plain methods of a node, which hold nothing for their client. */
export function createMethods(
  chain: PolkadotChain,
  { blockOf, stateOf }: ReturnType<typeof createLookup>,
): Record<string, Method> {
  const codeAt = (hash?: string | null): Code => chain.codeOf(stateOf(hash))
  const valueAt = (key: string, hash?: string | null) => stateOf(hash).get(keyText(fromHex(key)))
  const print = (value: Uint8Array | null) => (value === null ? null : toHex(value))
  const call = (entry: string, input: string, hash?: string | null) => {
    const state = stateOf(hash)
    return toHex(chain.codeOf(state).call(entry, fromHex(input), createOverlay(state)))
  }
  const hashAt = (number: number | string) => chain.at(Number(number))?.hash ?? null

  return {
    system_chain: () => chain.spec.name,
    system_name: () => 'portolan polkadot dev node',
    system_version: () => '1.0.0',
    system_chainType: () => 'Development',
    system_properties: () => ({ ss58Format: codeAt().ss58Prefix, ...chain.spec.properties }),
    system_health: () => ({ peers: 0, isSyncing: false, shouldHavePeers: false }),
    system_accountNextIndex: (address: string) => {
      const info = getSs58AddressInfo(address)
      if (!info.isValid) throw new RpcError(-32602, 'Invalid params: no SS58 address')
      const nonce = call('AccountNonceApi_account_nonce', toHex(info.publicKey))
      return Number(readUint(fromHex(nonce)))
    },
    chain_getHeader: (hash?: string | null) =>
      hash && !chain.find(hash) ? null : headerJson(blockOf(hash).header),
    chain_getBlock: (hash?: string | null) => {
      if (hash && !chain.find(hash)) return null
      const { header, extrinsics } = blockOf(hash)
      const block = { header: headerJson(header), extrinsics: extrinsics.map(toHex) }
      return { block, justifications: null }
    },
    chain_getBlockHash: (number?: number | string | number[] | null) => {
      if (number === undefined || number === null) return chain.best().hash
      return Array.isArray(number) ? number.map(hashAt) : hashAt(number)
    },
    chain_getFinalizedHead: () => chain.final().hash,
    state_getRuntimeVersion: (hash?: string | null) => codeAt(hash).version,
    state_getMetadata: (hash?: string | null) => toHex(codeAt(hash).metadata),
    state_call: call,
    state_getStorage: (key: string, hash?: string | null) => print(valueAt(key, hash)),
    state_getStorageHash: (key: string, hash?: string | null) => {
      const value = valueAt(key, hash)
      return value === null ? null : toHex(hash256(value))
    },
    state_getStorageSize: (key: string, hash?: string | null) => valueAt(key, hash)?.length ?? null,
    state_queryStorageAt: (keys: string[], hash?: string | null) => {
      const state = stateOf(hash)
      const changes = keys.map((key) => [key, print(state.get(keyText(fromHex(key))))])
      return [{ block: blockOf(hash).hash, changes }]
    },
    state_getReadProof: (keys: string[], hash?: string | null) => {
      const state = stateOf(hash)
      const { stateVersion } = chain.codeOf(state).version
      const wanted = keys.map((key) => nibblesOf(keyText(fromHex(key))))
      const proof = proofOf(trieOf(state), wanted, stateVersion).map(toHex)
      return { at: blockOf(hash).hash, proof }
    },
    state_getKeysPaged: (
      prefix: string | null,
      count: number,
      start?: string | null,
      hash?: string | null,
    ) => {
      const begin = keyText(fromHex(prefix ?? '0x'))
      const state = stateOf(hash)
      const keys: string[] = []
      let key = start ? keyText(fromHex(start)) : begin
      if (!start && begin !== '' && state.get(begin) !== null) keys.push(begin)
      while (keys.length < Math.min(count, 1_000)) {
        const next = state.next(key)
        if (next === null || !next.startsWith(begin)) break
        keys.push(next)
        key = next
      }
      return keys.map((text) => toHex(keyBytes(text)))
    },
    author_submitExtrinsic: (extrinsic: string) => chain.pool.submit(fromHex(extrinsic)),
    chainSpec_v1_chainName: () => chain.spec.name,
    chainSpec_v1_genesisHash: () => chain.genesis,
    chainSpec_v1_properties: () => chain.spec.properties,
    author_pendingExtrinsics: () => chain.pool.list().map(toHex),
  }
}
