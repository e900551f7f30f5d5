import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { WalletService } from '../../contract/variant.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { claimJobs, enqueueJob, keepJob } from '../../storage/tracking/jobs.ts'
import { type RefreshTarget, refreshJobKind, runRefresh } from './refresh-job.ts'

const { db } = await freshDatabase()
const never = new AbortController().signal

/** A job whose page takes as long as the test wants, on a clock that the test moves. */
const startSlow = async (network: string) => {
  const bench = await createWalletBench(db, 'c', { network })
  const { chain, network_id, address } = bench
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
  let time = Date.now()
  const sleepers = new Set<{ until: number; wake(): void }>()
  const clock: Clock = {
    now: () => time,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { until: time + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  }
  const advance = async (ms: number) => {
    await waitFor('it sleeps', () => sleepers.size > 0)
    time += ms
    for (const sleeper of sleepers)
      if (sleeper.until <= time) {
        sleepers.delete(sleeper)
        sleeper.wake()
      }
  }
  const gate = Promise.withResolvers<void>()
  const { readBalances } = chain
  chain.readBalances = async (queries, at, signal) => {
    await Promise.race([
      gate.promise,
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ])
    return await readBalances(queries, at, signal)
  }
  const job = await enqueueJob(db, {
    ...{ job_id: caller.organization_id, kind: refreshJobKind, network_id },
    organization_id: caller.organization_id,
    payload: { wallet_id, asset_type: chain.native.asset_type },
    claimMs: 4_000,
  })
  const running = runRefresh({ db, clock, chain, signal: never }, job)
  const claim = () => claimJobs(db, { kind: refreshJobKind, network_id, limit: 1, claimMs: 4_000 })
  const keptUntil = async (): Promise<number> => {
    const { next_attempt_time } = await db
      .selectFrom('job')
      .select('next_attempt_time')
      .where('job_id', '=', job.job_id)
      .executeTakeFirstOrThrow()
    return next_attempt_time.getTime()
  }
  return { running, advance, claim, keptUntil, finish: gate.resolve }
}

it('a page that takes longer than a claim is not claimed by another process', async () => {
  const { running, advance, claim, keptUntil, finish } = await startSlow('slow')
  for (let step = 0; step < 6; step++) {
    const before = await keptUntil()
    await advance(1_400)
    await waitFor('the claim is renewed', async () => (await keptUntil()) > before)
    expect(await claim()).toEqual([])
  }
  finish()
  expect(await running).toBe(true)
})

it('a job that another process has taken anyway is left to it', async () => {
  const { running, advance, claim } = await startSlow('taken')
  // As after a pause of the whole process.
  await advance(0)
  await db
    .updateTable('job')
    .set({ next_attempt_time: new Date(0) })
    .execute()
  expect(await claim()).toHaveLength(1)
  await advance(1_400)
  expect(await running).toBe(false)
})

it('a turn of a job reads one page, and the job is due again behind those that wait', async () => {
  const bench = await createWalletBench(db, 'c', { network: 'paged' })
  const { chain, network_id, address } = bench
  const caller = await bench.createCaller()
  const { organization_id } = caller
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
  const addresses = Array.from({ length: 250 }, (_, at) => address(at + 1))
  await caller.call('BatchRegisterAddresses', { wallet_id, addresses })
  await db.deleteFrom('job').execute()
  const kind = refreshJobKind
  await enqueueJob(db, {
    ...{ job_id: randomUUID(), kind, network_id, organization_id },
    payload: { wallet_id, asset_type: chain.native.asset_type },
    claimMs: 0,
  })
  let read = 0
  const { readBalances } = chain
  chain.readBalances = async (queries, at, signal) => {
    read += queries.length
    return await readBalances(queries, at, signal)
  }
  const turns: [read: number, isDone: boolean][] = []
  for (let turn = 0; turn < 3; turn++) {
    const [job = expect.fail()] = await claimJobs(db, {
      kind,
      network_id,
      limit: 1,
      claimMs: 4_000,
    })
    const isDone = await runRefresh(
      { db, clock: systemClock, chain, signal: never, most: { pages: 1 } },
      job,
    )
    turns.push([read, isDone])
  }
  expect(turns).toEqual([
    [100, false],
    [200, false],
    [250, true],
  ])
})

const erc20 = 'ASSET_TYPE_ERC20'

describe('the pages of a job', () => {
  /** A wallet with so many addresses, on a chain that says which pairs each page reads. */
  const startPaged = async (service: WalletService, network: string, addresses: number) => {
    const { chain, network_id, address, account, createCaller } = await createWalletBench(
      db,
      service,
      { network },
    )
    const { call, organization_id } = await createCaller()
    const { wallet_id } = await call('RegisterWallet', { name: 'w' })
    const all = Array.from({ length: addresses }, (_, at) => address(at + 1))
    await call('BatchRegisterAddresses', { wallet_id, addresses: all })
    const pages: string[][] = []
    chain.readBalances = async (queries, { number: block_number }) => {
      const nameOf = ({ address, asset }: (typeof queries)[number]) =>
        [address, asset.contract_address].map((part) => part.toString('hex')).join()
      pages.push(queries.map(nameOf))
      return queries.map(() => ({ balance: 0n, block_number }))
    }
    const enqueue = (target: Omit<RefreshTarget, 'wallet_id'>) =>
      enqueueJob(db, {
        ...{ job_id: organization_id, kind: refreshJobKind, network_id, organization_id },
        payload: { wallet_id, ...target },
        claimMs: 60_000,
      })
    const run = async (target: Omit<RefreshTarget, 'wallet_id'>) => {
      const job = await enqueue(target)
      return await runRefresh({ db, clock: systemClock, chain, signal: never }, job)
    }
    const finish = async () => {
      const job = await db
        .selectFrom('job')
        .selectAll()
        .where('job_id', '=', organization_id)
        .executeTakeFirstOrThrow()
      return await runRefresh({ db, clock: systemClock, chain, signal: never }, job)
    }
    const addContracts = async (from: number, to: number, contract_type: string) =>
      await sql`
        insert into contract (organization_id, network_id, contract_address, contract_type, create_time)
        select ${organization_id}::uuid, ${network_id}, decode(lpad(to_hex(n), 40, '0'), 'hex'),
          ${contract_type}, now()
        from generate_series(${from}::int4, ${to}::int4) n`.execute(db)
    const addHeld = async (asset_type: string, from: number, to: number) =>
      await sql`
        with added as (
          insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
          select gen_random_uuid(), ${network_id}, ${asset_type}, decode(lpad(to_hex(n), 40, '0'), 'hex'), n, now()
          from generate_series(${from}::int4, ${to}::int4) n returning *)
        insert into balance (wallet_id, organization_id, address, asset_id, asset_type, contract_address, balance,
          as_of_block, create_time, position, update_time)
        select wallet_id, organization_id, address, asset_id, asset_type, contract_address, 1, 0, now(), 0, now()
        from wallet_address, added where wallet_id = ${wallet_id}`.execute(db)
    const base = { chain, network_id, wallet_id, organization_id, account, call, pages }
    return { ...base, enqueue, run, finish, addContracts, addHeld }
  }
  const countIn = (pages: string[][]) => new Set(pages.flat()).size

  it('have a bounded number of balances, however many contracts an address has', async () => {
    const { pages, run, addContracts } = await startPaged('c', 'many', 30)
    await addContracts(1, 40, 'CONTRACT_TYPE_ERC20')
    await addContracts(41, 50, 'CONTRACT_TYPE_ERC721')
    expect(await run({ asset_type: erc20 })).toBe(true)
    expect(pages.map((page) => page.length)).toEqual([500, 500, 200])
    expect(countIn(pages)).toBe(1_200)
    // The second page begins within an address.
    expect(pages[0]!.at(-1)!.split(',')[0]).toBe(pages[1]![0]!.split(',')[0])
    // Those that have a balance now are not read twice.
    pages.splice(0)
    expect(await run({ asset_type: erc20 })).toBe(true)
    expect(pages.map((page) => page.length)).toEqual([500, 500, 200])
  })

  it('before the answer have a hundred balances of one address with many contracts', async () => {
    const { call, wallet_id, pages, finish, addContracts } = await startPaged('c', 'large', 1)
    await addContracts(1, 700, 'CONTRACT_TYPE_ERC20')
    await call('RefreshAssetBalances', { wallet_id, asset_type: erc20 })
    expect(pages.map((page) => page.length)).toEqual([100])
    const { rows } = await sql<{ job_id: string }>`
      update job set job_id = organization_id where payload->>'wallet_id' = ${wallet_id}
      returning job_id`.execute(db)
    expect(rows).toHaveLength(1)
    expect(await finish()).toBe(true)
    expect(pages.map((page) => page.length)).toEqual([100, 500, 100])
    expect(countIn(pages)).toBe(700)
  })

  it('find the items of a type among any number of others', async () => {
    const { pages, run, addHeld } = await startPaged('c', 'items', 2)
    await addHeld('ASSET_TYPE_ERC1155', 1, 700)
    await addHeld('ASSET_TYPE_ERC721', 701, 1_300)
    expect(await run({ asset_type: 'ASSET_TYPE_ERC721' })).toBe(true)
    expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(500)
    expect(pages.flat()).toHaveLength(1_200)
    expect(countIn(pages)).toBe(1_200)
  })

  it.each<WalletService>(['t', 's', 'p'])(
    'have the coin and any number of imported tokens (%s)',
    async (service) => {
      const bench = await startPaged(service, 'imports', 3)
      const { pages, run, network_id, organization_id, wallet_id, account } = bench
      await sql`
        with added as (
          insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
          select gen_random_uuid(), ${network_id}, ${bench.chain.native.asset_type}, int4send(n), 0, now()
          from generate_series(1, 600) n returning *)
        insert into token_import (network_id, address, asset_id, organization_id, wallet_id, token_address,
          token_account_address, create_time)
        select ${network_id}, ${account(2)}::bytea, asset_id, ${organization_id}::uuid, ${wallet_id}::uuid,
          contract_address, '', now() from added`.execute(db)
      // Of these two, a rule of S and P has one at all addresses; in T it is imported for each.
      await sql`
        insert into token_rule (rule_id, organization_id, network_id, asset_id, create_time)
        select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, asset_id, now()
        from asset where network_id = ${network_id} and contract_address = int4send(7)`.execute(db)
      expect(await run({ asset_type: bench.chain.native.asset_type })).toBe(true)
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(500)
      const expected = service === 't' ? 603 : 605
      expect([pages.flat().length, countIn(pages)]).toEqual([expected, expected])
    },
  )

  it('continue a job of the version before, and say where that version may continue', async () => {
    const { chain, account, pages, enqueue, addContracts } = await startPaged('c', 'before', 250)
    await addContracts(1, 2, 'CONTRACT_TYPE_ERC20')
    const job = await enqueue({ asset_type: chain.native.asset_type })
    const after = account(60).toString('hex')
    await keepJob(db, job, { progress: { after }, keepMs: 60_000 })
    const progress = async () => {
      const row = await db
        .selectFrom('job')
        .select('progress')
        .where('job_id', '=', job.job_id)
        .executeTakeFirstOrThrow()
      return row.progress as { after?: string }
    }
    const tools = { db, clock: systemClock, chain, signal: never }
    const stored = { ...job, progress: await progress() }
    expect(await runRefresh({ ...tools, most: { balances: 30, pages: 9 } }, stored)).toBe(false)
    expect(pages[0]![0]).toBe(`${account(61).toString('hex')},`)
    // Not the last of them: its other assets might be left.
    expect(await progress()).toMatchObject({ after: account(89).toString('hex') })
    expect(await runRefresh(tools, { ...job, progress: await progress() })).toBe(true)
    expect(pages.flat()).toHaveLength(190)
    expect(countIn(pages)).toBe(190)
  })
})
