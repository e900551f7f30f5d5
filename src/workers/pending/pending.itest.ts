import { describe, expect, it, onTestFinished } from 'vitest'
import { shiftedClock } from '../../../test/helpers/app.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { RawFields } from '../../chains/evm/block/records.ts'
import type { Canonical, Change } from '../../chains/evm/canonical/canonical.ts'
import type { Head, Pool, PoolOutcome } from '../../chains/evm/pool/pool-types.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { ensureNetwork } from '../../storage/tracking/networks.ts'
import { findPending, listPending } from '../../storage/transactions/pending.ts'
import { type PendingLimits, startPendingRecorder } from './pending.ts'

const { db } = await freshDatabase()
const quick: Partial<PendingLimits> = {
  ...{ recheckMs: 50, sweepMs: 50, contentMs: 50, forgetMs: 50, doubtMs: 20 },
}
let chains = 0
let made = 0
const change: Change = { removed: [], added: [], droppedAbove: undefined, isLost: false }

/** Nodes with one pool of transactions. */
const createNodes = () => {
  const held = new Map<string, RawFields>()
  const blocks = new Map<string, string[]>()
  const numberOf = new Map<string, number>()
  const read = new Set<string>()
  const announced = new Set<(hash: string) => void>()
  const listeners = new Set<(change: Change) => void>()
  const gone = new Set<string>()
  const state = {
    ...{ failing: false, hasPool: false, asked: 0, onContent: () => {} },
    /** Many clients do not serve a block that has left their chain. */
    servesGone: true,
    /** A block that is answered with something else. */
    broken: '',
  }
  const answer = ({ method, params }: { method: string; params: string }): PoolOutcome => {
    state.asked++
    if (state.failing) return { failure: 'NO_UPSTREAM' }
    const [first] = JSON.parse(params)
    if (method === 'txpool_content') state.onContent()
    if (method === 'eth_getBlockByNumber') {
      const [hash] = [...blocks.keys()].filter((one) => numberOf.get(one) === Number(first))
      const found = hash && !gone.has(hash) ? { hash } : { hash: `0x${'c'.repeat(64)}` }
      return { ok: true, result: JSON.stringify(found) }
    }
    if (method === 'eth_getBlockByHash' && first === state.broken)
      return { ok: true, result: 'no JSON' }
    if (method === 'eth_getBlockByHash' && gone.has(first) && !state.servesGone)
      return { ok: true, result: 'null' }
    if (method === 'eth_getBlockByHash') read.add(first)
    const found =
      method === 'txpool_content'
        ? { pending: { any: Object.fromEntries(held) }, queued: {} }
        : method === 'eth_getBlockByHash'
          ? { transactions: blocks.get(first) ?? [] }
          : (held.get(first) ?? null)
    return { ok: true, result: JSON.stringify(found) }
  }
  return {
    state,
    held,
    /** Until the nodes were asked that often again. */
    asked: (times: number) => {
      const target = state.asked + times
      return waitFor('the nodes are asked', () => state.asked >= target)
    },
    /** Until the transactions of a block were given. */
    wasRead: ({ hash }: Head) => waitFor('the block is read', () => read.has(hash)),
    /** Announces a transaction that is held, or one that is not. */
    announce: (hash: string) => {
      for (const notify of announced) notify(hash)
    },
    mine: (hash: string, { isBroken = false } = {}) => {
      const block = `0x${(++made).toString(16).padStart(64, 'b')}`
      if (isBroken) state.broken = block
      blocks.set(block, [hash])
      numberOf.set(block, made)
      held.set(hash, { ...held.get(hash), blockHash: block, blockNumber: `0x${made.toString(16)}` })
      const head = { number: made, hash: block, parent_hash: block, timestamp: 0 }
      for (const notify of listeners) notify({ ...change, added: [head] })
      return head
    },
    /** The block leaves the chain, and nodes hold its transactions again; the last one may not know that yet. */
    takeBack: (head: Head, { isNoticed = true } = {}) => {
      gone.add(head.hash)
      for (const hash of isNoticed ? (blocks.get(head.hash) ?? []) : [])
        held.set(hash, { ...held.get(hash), blockHash: null })
      for (const notify of listeners) notify({ ...change, removed: [head] })
    },
    /** The next head cannot be linked to the chain; some blocks have left it. */
    lose: (...removed: Head[]) => {
      for (const { hash } of removed) gone.add(hash)
      const head = { number: ++made, hash: '', parent_hash: '', timestamp: 0 }
      for (const notify of listeners) notify({ ...change, added: [head], isLost: true })
    },
    canonical: {
      onChange: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      head: () => ({ number: made, hash: '', parent_hash: '', timestamp: 0 }),
      bestHashAt: () => (gone.size > 0 ? 'another' : undefined),
      isLinking: () => false,
    } satisfies Pick<Canonical, 'onChange' | 'head' | 'bestHashAt' | 'isLinking'>,
    pool: {
      request: async (request) => answer(request),
      can: (capability) => capability === 'txpool' && state.hasPool,
      onPending: (listener) => {
        announced.add(listener)
        return () => announced.delete(listener)
      },
      pendingSources: () => ['node'],
    } satisfies Pick<Pool, 'request' | 'can' | 'onPending' | 'pendingSources'>,
  }
}

const from = `0x${'1'.repeat(40)}`
const transaction = (nonce = 0, gasPrice = '0x5'): RawFields & { hash: string } => ({
  hash: `0x${(++made).toString(16).padStart(64, 'e')}`,
  ...{ from, to: from, gas: '0x5208', gasPrice, input: '0x', nonce: `0x${nonce.toString(16)}` },
  ...{ value: '0x1', r: '0x1', s: '0x2', v: '0x1b', blockHash: null, blockNumber: null },
})

const open = async (limits: Partial<PendingLimits> = {}, own: Db = db) => {
  const network_id = await ensureNetwork(db, {
    chain: 'q',
    network: `n${++chains}`,
    create_time: new Date(),
  })
  const nodes = createNodes()
  const start = ({ listens = true, clock = systemClock } = {}) => {
    const recorder = startPendingRecorder({
      ...{ db: own, pool: nodes.pool, canonical: nodes.canonical, prefix: 'eth' },
      ...{ network_id, clock, listens },
      ...{ log: silentLog, limits: { ...quick, ...limits } },
    })
    onTestFinished(recorder.stop)
    return recorder
  }
  const listed = async () => {
    const sender = Buffer.from(from.slice(2), 'hex')
    const rows = await listPending(db, network_id, { from: sender, limit: 1_000 })
    return rows.map(({ detail }) => (detail as RawFields).hash)
  }
  const find = (hash: string) =>
    findPending(db, network_id, {
      transaction_hash: Buffer.from(hash.slice(2), 'hex'),
      now: Date.now(),
    })
  const shows = (...hashes: string[]) =>
    waitFor(`${hashes} is listed`, async () => String(await listed()) === String(hashes))
  const hold = (...args: Parameters<typeof transaction>) => {
    const one = transaction(...args)
    nodes.held.set(one.hash, one)
    return one.hash
  }
  return { nodes, start, listed, find, shows, hold, network_id }
}

describe('the recorder', () => {
  it('waits for transactions that are announced before a node has them, and for unreachable nodes', async () => {
    const { nodes, start, shows } = await open()
    start()
    const late = transaction()
    nodes.state.failing = true
    nodes.announce(late.hash)
    await nodes.asked(2)
    nodes.state.failing = false
    nodes.held.set(late.hash, late)
    await shows(late.hash)
  })

  it('concludes nothing while no node answers', async () => {
    const { nodes, start, shows, hold, listed } = await open()
    start()
    const hash = hold()
    nodes.announce(hash)
    await shows(hash)
    nodes.state.failing = true
    nodes.held.delete(hash)
    await nodes.asked(5)
    expect(await listed()).toEqual([hash])
    nodes.state.failing = false
    await shows()
  })

  it('two of them record once; each notices what the other has not seen', async () => {
    const { nodes, start, shows, hold } = await open()
    start()
    start()
    const hashes = [hold(0), hold(1), hold(2)]
    for (const hash of hashes) nodes.announce(hash)
    await shows(...hashes)
    nodes.mine(hashes[0]!)
    await shows(...hashes.slice(1))
  })

  it('lists one that comes back, with its first time', async () => {
    const { nodes, start, shows, hold, find } = await open()
    nodes.state.hasPool = true
    start()
    const hash = hold()
    await shows(hash)
    const first = await find(hash)
    const taken = nodes.held.get(hash)!
    nodes.held.delete(hash)
    await shows()
    expect(await find(hash)).toEqual(first)
    nodes.held.set(hash, taken)
    await shows(hash)
    expect(await find(hash)).toEqual(first)
  })

  it.each([true, false])(
    'lists a transaction again when its block leaves the chain, though no node announces it again (served: %s)',
    async (servesGone) => {
      const { nodes, start, shows, hold, listed } = await open()
      nodes.state.servesGone = servesGone
      start()
      const hash = hold()
      nodes.announce(hash)
      await shows(hash)
      const block = nodes.mine(hash)
      await nodes.wasRead(block)
      await shows()
      // The node that is asked may not know of the other branch yet.
      nodes.takeBack(block, { isNoticed: false })
      await shows(hash)
      await nodes.asked(5)
      expect(await listed()).toEqual([hash])
    },
  )

  it('asks again for a block that left the chain while no node answers', async () => {
    const { nodes, start, shows, hold } = await open()
    const before = start()
    const hash = hold()
    nodes.announce(hash)
    await shows(hash)
    const block = nodes.mine(hash)
    await shows()
    await before.stop()
    start()
    nodes.state.failing = true
    nodes.takeBack(block, { isNoticed: false })
    await nodes.asked(2)
    nodes.state.failing = false
    await shows(hash)
  })

  it('finds out what left a chain that could not be linked', async () => {
    const { nodes, start, shows, hold, listed } = await open()
    start()
    const [gone, stays] = [hold(0), hold(1)]
    for (const hash of [gone, stays]) nodes.announce(hash)
    await shows(gone, stays)
    const block = nodes.mine(gone)
    await nodes.wasRead(nodes.mine(stays))
    await shows()
    nodes.lose(block)
    await shows(gone)
    await nodes.asked(5)
    expect(await listed()).toEqual([gone])
  })

  it('a block that nodes cannot give does not hold up the next ones', async () => {
    // The sweep does not look at them.
    const { nodes, start, shows, hold } = await open({ recheckMs: 3_600_000 })
    start()
    const [first, second] = [hold(0), hold(1)]
    for (const hash of [first, second]) nodes.announce(hash)
    await shows(first, second)
    nodes.mine(first, { isBroken: true })
    nodes.mine(second)
    await shows(first)
  })

  it('keeps no more than it may, the newest', async () => {
    const { nodes, start, shows, hold } = await open({ maxRows: 3 })
    const recorder = start()
    const hashes: string[] = []
    for (let nonce = 0; nonce < 6; nonce++) {
      hashes.push(hold(nonce))
      await recorder.record([nodes.held.get(hashes.at(-1)!)!])
      // The next one is younger.
      await systemClock.sleep(2)
    }
    await shows(...hashes.slice(3))
  })

  it('removes old entries, and loses nothing when the database fails', async () => {
    let isBroken = false
    const faulty = db.withPlugin({
      transformQuery: ({ node }) => {
        if (isBroken) throw new Error('broken')
        return node
      },
      transformResult: async ({ result }) => result,
    })
    const { nodes, start, shows, hold, network_id } = await open({}, faulty)
    const old = {
      ...{
        network_id,
        transaction_hash: Buffer.alloc(32, 7),
        from: Buffer.alloc(20, 7),
        nonce: 0,
      },
      ...{ detail: '{}', record_time: new Date(0), leave_time: new Date(Date.now() - 90_000_000) },
    }
    await db.insertInto('pending_transaction').values(old).execute()
    start()
    await waitFor('the old one is gone', async () => {
      const rows = await db
        .selectFrom('pending_transaction')
        .select('nonce')
        .where('network_id', '=', network_id)
        .execute()
      return rows.length === 0
    })
    const hash = hold()
    isBroken = true
    nodes.announce(hash)
    await nodes.asked(2)
    isBroken = false
    await shows(hash)
  })

  it('reports what it recorded, what it keeps and what its bounds dropped', async () => {
    const { nodes, start, hold, listed } = await open({ maxRows: 2 })
    const recorder = start()
    const hashes = [0, 1, 2].map((nonce) => hold(nonce))
    for (const hash of hashes) nodes.announce(hash)
    await waitFor('the oldest is gone', () => {
      const { recorded, dropped, kept } = recorder.status()
      return recorded === 3 && dropped === 1 && kept === 2
    })
    // Of transactions that were announced in one millisecond any may be the oldest.
    nodes.mine(String((await listed())[0]))
    await waitFor('one waits', () => recorder.status().waiting < 2)
    expect(recorder.status()).toMatchObject({ sources: ['node'], reads_txpool: false, queued: 0 })
    nodes.state.hasPool = true
    expect(recorder.status().reads_txpool).toBe(true)
    expect(start({ listens: false }).status()).toMatchObject({ sources: [], reads_txpool: false })
  })

  it('reads the pool again within 20 s, however long it took the last time', async () => {
    const { nodes, hold, shows, ...opened } = await open()
    nodes.state.hasPool = true
    const rests: number[] = []
    const clock = shiftedClock()
    opened.start({
      clock: {
        ...clock,
        sleep: (ms, signal) => {
          if (ms > 1_000) rests.push(ms)
          return clock.sleep(Math.min(ms, 10), signal)
        },
      },
    })
    nodes.state.onContent = () => clock.shift(10_000)
    await waitFor('the pool is read', () => rests.length > 0)
    await shows(hold())
    expect(new Set(rests)).toEqual(new Set([20_000]))
  })

  it('records only reported transactions where it does not listen', async () => {
    const { nodes, start, shows, hold } = await open()
    nodes.state.hasPool = true
    const recorder = start({ listens: false })
    const [announced, notified] = [hold(0), hold(1)]
    nodes.announce(announced)
    recorder.see(notified)
    await shows(notified)
    await nodes.asked(5)
    await shows(notified)
    nodes.mine(notified)
    await shows()
  })

  it('records only transactions', async () => {
    const { nodes, start, shows, hold, listed } = await open()
    const recorder = start()
    const fine = hold()
    await recorder.record([
      { ...transaction(), nonce: `0x${'f'.repeat(17)}` },
      { ...transaction(), from: '0x12' },
      { ...transaction(), input: `0x${'00'.repeat(200_000)}` },
      { ...transaction(), r: 'no' },
      { ...nodes.held.get(fine), accessList: ['\u0000'], data: '\u0000', yParity: '\u0000' },
    ])
    await shows(fine)
    expect(await listed()).toHaveLength(1)
  })
})
