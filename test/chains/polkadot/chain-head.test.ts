import { describe, expect, it, onTestFinished } from 'vitest'
import { hash256, keyBytes, keyText, toHex } from '../../../devnet/polkadot/bytes.ts'
import type { PolkadotDevChainOptions } from '../../../devnet/polkadot/node.ts'
import { type ServerOptions, serveChain } from '../../../devnet/polkadot/server.ts'
import { accountKey } from '../../../devnet/polkadot/spec.ts'
import { createRandom } from '../../helpers/random.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { type Harness, startHarness } from './harness.ts'
import { connectRaw, type RawEvent } from './raw-client.ts'

const unit = 10n ** 12n

const start = async (options: PolkadotDevChainOptions = {}) => {
  const node = await startHarness(options)
  onTestFinished(node.stop)
  return { node, client: await connectRaw(node.node_url) }
}
const serveMore = async (node: Harness, options: ServerOptions) => {
  const server = await serveChain(node.chain, options)
  onTestFinished(server.stop)
  return { server, client: await connectRaw(server.url) }
}
type Started = { result: string; operationId: string; discardedItems?: number }

/** Holds the events of a follower against what the specification promises of them. */
function checkEvents(events: readonly RawEvent[]) {
  const parents = new Map<string, string>()
  const open = new Set<string>()
  let [final, best] = ['', '']
  for (const [at, received] of events.entries()) {
    expect(received.event === 'initialized').toBe(at === 0)
    if (received.event === 'initialized') {
      final = (received.finalizedBlockHashes as string[]).at(-1)!
    } else if (received.event === 'newBlock') {
      const { blockHash, parentBlockHash } = received as unknown as Record<string, string>
      expect(open.has(parentBlockHash!) || parentBlockHash === final).toBe(true)
      expect(parents.has(blockHash!)).toBe(false)
      parents.set(blockHash!, parentBlockHash!)
      open.add(blockHash!)
    } else if (received.event === 'bestBlockChanged') {
      best = received.bestBlockHash as string
      expect(open.has(best) || best === final).toBe(true)
    } else if (received.event === 'finalized') {
      const finalized = received.finalizedBlockHashes as string[]
      for (const hash of finalized) {
        expect(parents.get(hash)).toBe(final)
        expect(open.delete(hash)).toBe(true)
        final = hash
      }
      const pruned = received.prunedBlockHashes as string[]
      for (const hash of pruned) expect(open.delete(hash)).toBe(true)
      expect(pruned).not.toContain(best)
      expect(finalized.slice(0, -1)).not.toContain(best)
      // What stays open stands on the final block.
      for (const hash of open) {
        let at = hash
        while (at !== final && parents.has(at)) at = parents.get(at)!
        expect(at).toBe(final)
      }
    } else throw new Error(`unexpected ${received.event}`)
  }
  return { open, final, best }
}

describe('the head of the chain, as the new JSON-RPC specification has it', () => {
  it('reports every block, fork and finality in a consistent order', async () => {
    for (const seed of [1, 2]) {
      const { node, client } = await start({ finality: 3, seed })
      const random = createRandom(seed)
      const pick = (count: number) => Math.floor(random() * count)
      const step = () => {
        const { above } = node.chain.recent()
        if (random() < 0.5 || above.length === 0) node.mine(1)
        else
          node.make({ parent: above[pick(above.length)]!.hash, extrinsics: [], skip: 1 + pick(3) })
      }
      for (let left = 20; left > 0; left--) step()
      const [first, second] = [await client.follow(true), await client.follow(false)]
      for (let left = 60; left > 0; left--) step()
      // Everything reported before is there with the answer.
      await client.ask('system_chain')
      const { above } = node.chain.recent()
      expect(client.received(first).some((one) => (one.prunedBlockHashes as [])?.length > 1)).toBe(
        true,
      )
      for (const id of [first, second])
        expect(checkEvents(client.received(id))).toEqual({
          open: new Set(above.map(({ hash }) => hash)),
          final: node.chain.final().hash,
          best: node.chain.best().hash,
        })
    }
  })

  it('begins with a minute of final blocks and the runtime, and reports when that changes', async () => {
    const { node, client } = await start({ upgradeAt: 9 })
    node.mine(7)
    const [withRuntime, without] = [await client.follow(true), await client.follow(false)]
    const last = [3, 4, 5, 6, 7].map((number) => node.chain.at(number)!.hash)
    const runtime = (specVersion: number) => ({
      type: 'valid',
      spec: {
        specName: 'statemine',
        implName: 'statemine',
        specVersion,
        implVersion: 0,
        transactionVersion: expect.any(Number),
        apis: expect.objectContaining({ '0xdf6acb689907609b': 4 }),
      },
    })
    expect(client.received(withRuntime)[0]).toEqual({
      event: 'initialized',
      finalizedBlockHashes: last,
      finalizedBlockRuntime: runtime(900),
    })
    expect(client.received(without)[0]).toEqual({
      event: 'initialized',
      finalizedBlockHashes: last,
    })
    node.mine(3)
    const hash = node.chain.final().hash
    for (const id of [withRuntime, without])
      await waitFor('all blocks are reported', () =>
        client.received(id).some((one) => (one.finalizedBlockHashes as string[])?.includes(hash)),
      )
    const runtimes = (id: string) =>
      client.received(id).flatMap((one) => (one.event === 'newBlock' ? [one.newRuntime] : []))
    expect(runtimes(withRuntime)).toEqual([null, runtime(901), null])
    expect(runtimes(without)).toEqual([undefined, undefined, undefined])
  })

  it('gives header, body, calls and storage of a block that is held', async () => {
    const { node, client } = await start({ finality: 2 })
    node.mine(2)
    const paid = node.make({ extrinsics: [node.pay(1, 50, unit)] })
    const follow = await client.follow(true)
    const header = await client.ask('chainHead_v1_header', follow, paid.hash)
    expect(header).toEqual({ result: toHex(paid.header) })
    const operate = async (name: string, ...params: unknown[]) => {
      const { result } = await client.ask<Started>(`chainHead_v1_${name}`, follow, ...params)
      expect(result).toMatchObject({ result: 'started' })
      return result!
    }
    const body = await operate('body', paid.hash)
    expect(await client.wait(follow, 'operationBodyDone', body.operationId)).toMatchObject({
      value: paid.extrinsics.map(toHex),
    })
    const nonce = ['AccountNonceApi_account_nonce', toHex(node.account(1))]
    const call = await operate('call', paid.hash, ...nonce)
    expect(await client.wait(follow, 'operationCallDone', call.operationId)).toMatchObject({
      output: '0x01000000',
    })
    // Clients send nothing for no bytes; what the runtime does not have is an error of its own.
    const none = await operate('call', paid.hash, 'Metadata_metadata_versions', '')
    expect(await client.wait(follow, 'operationError', none.operationId)).toMatchObject({
      error: expect.stringContaining('Metadata_metadata_versions'),
    })
    const name = accountKey(node.account(50))
    const [key, stored] = [toHex(keyBytes(name)), paid.state.get(name)!]
    const items = [
      { key, type: 'value' },
      { key, type: 'hash' },
      { key, type: 'descendantsHashes' },
      { key: `${key}00`, type: 'value' },
      { key: `${key}00`, type: 'closestDescendantMerkleValue' },
      { key: '0x', type: 'closestDescendantMerkleValue' },
    ]
    const look = await operate('storage', paid.hash, items, null)
    expect(look.discardedItems).toBe(0)
    await client.wait(follow, 'operationStorageDone', look.operationId)
    const found = await client.wait(follow, 'operationStorageItems', look.operationId)
    expect(found.items).toEqual([
      { key, value: toHex(stored) },
      { key, hash: toHex(hash256(stored)) },
      { key, hash: toHex(hash256(stored)) },
      // Of the whole trie it is the root that the header commits to.
      { key: '0x', closestDescendantMerkleValue: toHex(paid.state.root(0)) },
    ])
    const child = await operate('storage', paid.hash, [{ key, type: 'value' }], '0x1234')
    await client.wait(follow, 'operationStorageDone', child.operationId)
    expect(
      client
        .received(follow)
        .some(
          ({ event, operationId }) =>
            event === 'operationStorageItems' && operationId === child.operationId,
        ),
    ).toBe(false)
  })

  it('gives long answers in pages, allows 16 at once, and takes back what was let go', async () => {
    const { node } = await start()
    node.mine(1)
    const { client } = await serveMore(node, { limits: { page: 10 } })
    const { hash, state } = node.chain.best()
    const prefix = toHex(keyBytes(accountKey(node.account(1)))).slice(0, 2 + 64)
    const all: string[] = []
    const begin = keyText(Buffer.from(prefix.slice(2), 'hex'))
    for (let at = state.next(begin); at?.startsWith(begin); at = state.next(at)) all.push(at)
    expect(all.length).toBeGreaterThan(15)
    const follow = await client.follow(false)
    const item = { key: prefix, type: 'descendantsValues' }
    const open = async (count: number) => {
      const items = Array.from({ length: count }, () => item)
      return (await client.ask<Started>('chainHead_v1_storage', follow, hash, items, null)).result!
    }
    const { operationId } = await open(1)
    await client.wait(follow, 'operationWaitingForContinue', operationId)
    const found = () =>
      client
        .received(follow)
        .filter((one) => one.event === 'operationStorageItems' && one.operationId === operationId)
        .flatMap((one) => one.items as { key: string; value: string }[])
    expect(found()).toHaveLength(10)
    // It continues with the same block's state, whatever came since and though it was let go.
    await client.ask('chainHead_v1_unpin', follow, hash)
    await node.fund(node.address(node.account(1_234)), unit)
    for (let left = 10; left > 0; left--)
      await client.ask('chainHead_v1_continue', follow, operationId)
    await client.wait(follow, 'operationStorageDone', operationId)
    expect(found().map(({ key }) => key)).toEqual(all.map((key) => toHex(keyBytes(key))))
    expect(found().map(({ value }) => value)).toEqual(all.map((key) => toHex(state.get(key)!)))

    const best = node.chain.best().hash
    const look = (count: number) =>
      client.ask<Started>('chainHead_v1_storage', follow, best, Array(count).fill(item), null)
    const first = (await look(10)).result!
    expect(first).toMatchObject({ result: 'started', discardedItems: 0 })
    expect((await look(10)).result).toMatchObject({ result: 'started', discardedItems: 4 })
    const limitReached = { result: { result: 'limitReached' } }
    expect(await look(1)).toEqual(limitReached)
    expect(await client.ask('chainHead_v1_body', follow, best)).toEqual(limitReached)
    await client.ask('chainHead_v1_stopOperation', follow, first.operationId)
    expect((await look(11)).result).toMatchObject({ result: 'started', discardedItems: 1 })
    const before = client.received(follow).length
    await client.ask('chainHead_v1_continue', follow, first.operationId)
    expect(client.received(follow)).toHaveLength(before)
  })

  it('keeps a block of a lost branch until it is let go, and refuses an unknown block', async () => {
    const { node, client } = await start({ finality: 2 })
    node.mine(3)
    const follow = await client.follow(true)
    const lost = node.make({ extrinsics: [node.pay(1, 50, unit)] })
    const above = node.make({ extrinsics: [] })
    node.fork(2)
    expect(node.chain.final().number).toBe(lost.number)
    await waitFor('it is reported as lost', () =>
      client
        .received(follow)
        .some((one) => (one.prunedBlockHashes as string[])?.includes(lost.hash)),
    )
    expect((await client.wait(follow, 'finalized')).prunedBlockHashes).toEqual([
      lost.hash,
      above.hash,
    ])
    expect(node.chain.find(lost.hash)).toBeUndefined()
    expect((await client.ask('chainHead_v1_header', follow, lost.hash)).result).toBe(
      toHex(lost.header),
    )
    const nonce = ['AccountNonceApi_account_nonce', toHex(node.account(1))] as const
    const { result } = await client.ask<Started>('chainHead_v1_call', follow, lost.hash, ...nonce)
    expect(await client.wait(follow, 'operationCallDone', result!.operationId)).toMatchObject({
      output: '0x01000000',
    })
    const { hash } = node.chain.best()
    const unpin = (hashes: unknown) => client.ask('chainHead_v1_unpin', follow, hashes)
    expect(await unpin([lost.hash, hash, lost.hash])).toEqual({ code: -32_804 })
    // One that is unknown leaves all others as they were.
    expect(await unpin([lost.hash, `0x${'11'.repeat(32)}`])).toEqual({ code: -32_801 })
    expect(await unpin([lost.hash])).toEqual({ result: null })
    for (const [method, ...params] of [
      ['header'],
      ['body'],
      ['call', ...nonce],
      ['storage', [{ key: '0x00', type: 'value' }], null],
      ['unpin'],
    ])
      expect(await client.ask(`chainHead_v1_${method}`, follow, lost.hash, ...params)).toEqual({
        code: -32_801,
      })
    // It cannot be gone on with either, though it would make the longer chain.
    for (const { hash: parent } of [lost, above])
      expect(() => node.make({ parent })).toThrow('unknown or below')
  })

  it('refuses invalid requests, and ignores those of closed subscriptions', async () => {
    const { node, client } = await start()
    node.mine(1)
    const { hash } = node.chain.best()
    const without = await client.follow(false)
    const nonce = ['AccountNonceApi_account_nonce', toHex(node.account(1))]
    expect(await client.ask('chainHead_v1_call', without, hash, ...nonce)).toEqual({
      code: -32_802,
    })
    const item = { key: '0x00', type: 'value' }
    for (const [method, ...params] of [
      ['chainHead_v1_follow'],
      ['chainHead_v1_follow', 'yes'],
      ['chainHead_v1_header', 7, hash],
      ['chainHead_v1_header', without],
      ['chainHead_v1_storage', without, hash, item, null],
      ['chainHead_v1_storage', without, hash, [{ ...item, key: 'zz' }], null],
      ['chainHead_v1_storage', without, hash, [{ ...item, type: 'all' }], null],
      ['chainHead_v1_storage', without, hash, [null], null],
      ['chainHead_v1_storage', without, hash, [item], 'zz'],
      ['chainHead_v1_unpin', without, 7],
      ['chainHead_v1_continue', without],
      ['transaction_v1_broadcast', 'zz'],
      ['transaction_v1_stop', 'unknown'],
      ['archive_v1_hashByHeight', '1'],
      ['archive_v1_header'],
    ] as [string, ...unknown[]][])
      expect([method, await client.ask(method, ...params)]).toEqual([method, { code: -32_602 }])
    const second = await client.follow(true)
    expect(await client.ask('chainHead_v1_follow', true)).toEqual({ code: -32_800 })
    expect(await client.ask('chainHead_v1_unfollow', second)).toEqual({ result: null })
    await client.follow(true)
    const limitReached = { result: { result: 'limitReached' } }
    const quiet: [string, unknown[], object][] = [
      ['header', [hash], { result: null }],
      ['body', [hash], limitReached],
      ['call', [hash, ...nonce], limitReached],
      ['storage', [hash, [item], null], limitReached],
      ['unpin', [hash], { result: null }],
      ['continue', ['1'], { result: null }],
      ['stopOperation', ['1'], { result: null }],
      ['unfollow', [], { result: null }],
    ]
    for (const [method, params, answer] of quiet)
      expect(await client.ask(`chainHead_v1_${method}`, second, ...params)).toEqual(answer)
    const received = client.received(second).length
    node.mine(2)
    await client.ask('system_chain')
    expect(client.received(second)).toHaveLength(received)
  })

  it('stops a follower that holds too many blocks, and one that does not read', async () => {
    const { node } = await start({ finality: 1 })
    node.mine(10)
    const { client } = await serveMore(node, { limits: { pinned: 8, unsentBytes: 1 << 20 } })
    const [careless, careful] = [await client.follow(false), await client.follow(false)]
    for (let left = 10; left > 0; left--) {
      const { hash } = node.chain.final()
      await client.ask('chainHead_v1_unpin', careful, hash)
      node.mine(1)
    }
    expect(await client.wait(careless, 'stop')).toEqual({ event: 'stop' })
    expect(client.received(careless).at(-1)!.event).toBe('stop')
    const { hash } = node.chain.best()
    expect(await client.ask('chainHead_v1_header', careless, hash)).toEqual({ result: null })
    expect(client.received(careful).some(({ event }) => event === 'stop')).toBe(false)

    const slow = await connectRaw(
      `${(await serveMore(node, { limits: { unsentBytes: 1 << 20 } })).server.url}`,
    )
    const follow = await slow.follow(false)
    slow.socket.pause()
    // The code of the runtime, again and again, until no buffer between the two takes more.
    const params = [follow, hash, [{ key: toHex(Buffer.from(':code')), type: 'value' }], null]
    const message = { jsonrpc: '2.0', id: 9, method: 'chainHead_v1_storage', params }
    for (let left = 40; left > 0; left--) slow.socket.send(JSON.stringify(message))
    node.mine(3)
    slow.socket.resume()
    expect(await slow.wait(follow, 'stop')).toEqual({ event: 'stop' })
    expect(slow.received(follow).at(-1)!.event).toBe('stop')
    await slow.follow(false)
  })

  it('stops a follower that missed something while the node was silent', async () => {
    const { node, client } = await start()
    const follow = await client.follow(false)
    node.server.setMode('hanging')
    node.mine(2)
    node.server.setMode('up')
    expect(await client.wait(follow, 'stop')).toEqual({ event: 'stop' })
    const { hash } = node.mine(1)
    const again = await client.follow(false)
    const [first] = client.received(again)
    expect((first!.finalizedBlockHashes as string[]).at(-1)).toBe(hash)
    expect(client.received(follow).at(-1)!.event).toBe('stop')
  })
})
