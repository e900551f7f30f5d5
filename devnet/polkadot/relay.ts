// A relay chain for tests of finality: headers, a state with the head of one parachain and the authorities, and
// justifications signed by them. No runtime runs in it.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ed25519 } from '@noble/curves/ed25519.js'
import { Twox64Concat } from '@polkadot-api/substrate-bindings'
import { WebSocketServer } from 'ws'
import { compact, fromHex, hash256, keyText, storageKey, toHex, uint, withLength } from './bytes.ts'
import { headerJson } from './header.ts'
import { answerRequest, type Method, parseRequests, RpcError } from './rpc.ts'
import { insert, nibblesOf, proofOf, rootOf, type Trie } from './trie.ts'

type RelayBlock = { number: number; hash: Uint8Array; header: Uint8Array; trie: Trie; set: number }

/** A relay chain with its server. */
export type RelayChain = {
  url: string
  newest(): { number: number; hash: string }
  /** Makes a block, final at once, with a head of the parachain; the last one of its set changes the authorities. */
  make(head?: Uint8Array, options?: { changesSet?: boolean }): { number: number; hash: string }
  /** Changes an answer on its way out; undefined leaves it as it is. */
  tamper(change: ((method: string, result: unknown) => unknown) | undefined): void
  /** States of blocks below are discarded. */
  prune(below: number): void
  /** A finality proof of other signers, or of another block. */
  prove(number: number, options?: ProofOptions): string
  stop(): Promise<void>
}

/** What is wrong with a proof. */
export type ProofOptions = {
  /** How many of the authorities vote. */
  voters?: number
  /** The set whose authorities vote. */
  set?: number
  /** The number of the set that the votes name. */
  setId?: number
  /** The votes are for the block after it, with its header. */
  isDescendant?: boolean
}

const authorities = 4
const keyOf = (set: number, index: number): Uint8Array =>
  hash256(Buffer.from(`authority ${index} of set ${set}`))
const publicKeys = (set: number): Uint8Array[] =>
  Array.from({ length: authorities }, (_, index) => ed25519.getPublicKey(keyOf(set, index)))
const listOf = (set: number): Buffer =>
  Buffer.concat([compact(authorities), ...publicKeys(set).flatMap((key) => [key, uint(1, 8)])])

/** Starts a relay chain of one parachain. */
export async function startRelay({
  para_id,
  head: firstHead,
}: {
  para_id: number
  /** The first block of the parachain. */
  head: Uint8Array
}): Promise<RelayChain> {
  const blocks: RelayBlock[] = []
  let change: ((method: string, result: unknown) => unknown) | undefined
  let set = 0
  let lastHead = firstHead
  let prunedBelow = 0

  const make: RelayChain['make'] = (head = lastHead, { changesSet = false } = {}) => {
    lastHead = head
    const parent = blocks.at(-1)
    const number = blocks.length
    const after = changesSet ? set + 1 : set
    let trie: Trie
    for (const [key, value] of [
      [storageKey('Grandpa', 'CurrentSetId'), uint(after, 8)],
      [storageKey('Grandpa', 'Authorities'), listOf(after)],
      [storageKey('Paras', 'Heads', Twox64Concat(uint(para_id, 4))), withLength(head)],
      [storageKey('System', 'Number'), uint(number, 4)],
    ] as const)
      trie = insert(trie, nibblesOf(key), value)
    const scheduled = Buffer.concat([Buffer.of(1), listOf(after), uint(0, 4)])
    const log = Buffer.concat([Buffer.of(4), Buffer.from('FRNK'), withLength(scheduled)])
    const header = Buffer.concat([
      parent ? parent.hash : Buffer.alloc(32),
      compact(number),
      rootOf(trie, 1),
      Buffer.alloc(32, 3),
      ...(changesSet ? [compact(1), log] : [compact(0)]),
    ])
    const block = { number, hash: hash256(header), header, trie, set }
    blocks.push(block)
    set = after
    return { number, hash: toHex(block.hash) }
  }

  const prove: RelayChain['prove'] = (number, options = {}) => {
    const asked = blocks[number]
    if (!asked) throw new RpcError(1, 'Block not yet finalized')
    // The last one of the set of the block.
    const target = blocks.findLast((block) => block.set === asked.set)!
    const { voters = authorities, setId = target.set, isDescendant = false } = options
    const signers = options.set ?? target.set
    const child = Buffer.concat([target.hash, compact(target.number + 1), Buffer.alloc(65)])
    const voted = isDescendant
      ? Buffer.concat([hash256(child), uint(target.number + 1, 4)])
      : Buffer.concat([target.hash, uint(target.number, 4)])
    const round = uint(7, 8)
    const message = Buffer.concat([Buffer.of(1), voted, round, uint(setId, 8)])
    const votes = publicKeys(signers)
      .slice(0, voters)
      .map((key, index) =>
        Buffer.concat([voted, ed25519.sign(message, keyOf(signers, index)), key]),
      )
    const justification = Buffer.concat([
      round,
      target.hash,
      uint(target.number, 4),
      compact(votes.length),
      ...votes,
      ...(isDescendant ? [compact(1), child] : [compact(0)]),
    ])
    const unknown = blocks.slice(number + 1, target.number + 1).map(({ header }) => header)
    return toHex(
      Buffer.concat([target.hash, withLength(justification), compact(unknown.length), ...unknown]),
    )
  }

  const at = (hash: string | null | undefined): RelayBlock => {
    const found = hash ? blocks.find((block) => toHex(block.hash) === hash) : blocks.at(-1)
    if (!found) throw new RpcError(-32_000, 'UnknownBlock: header not found in the database')
    return found
  }
  const methods: Record<string, Method> = {
    chain_getBlockHash: (number: number) => blocks[number] && toHex(blocks[number].hash),
    chain_getFinalizedHead: () => toHex(blocks.at(-1)!.hash),
    chain_getHeader: (hash?: string) => headerJson(at(hash).header),
    state_getReadProof: (keys: string[], hash?: string) => {
      const wanted = keys.map((key) => nibblesOf(keyText(fromHex(key))))
      const { trie, number } = at(hash)
      if (number < prunedBelow) throw new RpcError(4003, 'State already discarded')
      return { at: hash, proof: proofOf(trie, wanted, 1).map(toHex) }
    },
    // Asked for the number of the set only.
    state_getStorage: () => toHex(uint(set, 8)),
    grandpa_proveFinality: (number: number) => prove(number),
  }
  make()

  const server = createServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', (data) => {
      const asked = parseRequests(String(data))
      if (!asked || Array.isArray(asked)) return
      const reply = answerRequest(asked, methods, change)
      if (reply) socket.send(JSON.stringify(reply))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    newest: () => {
      const { number, hash } = blocks.at(-1)!
      return { number, hash: toHex(hash) }
    },
    make,
    prove,
    prune: (below) => {
      prunedBelow = below
    },
    tamper: (next) => {
      change = next
    },
    stop: async () => {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      server.close()
      await once(server, 'close')
    },
  }
}
