import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { callRpc } from '../../devnet/anvil/rpc.ts'
import { createSigner, seedOf } from '../../devnet/polkadot/sign.ts'
import type { Connection, Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { bundledProgram } from '../helpers/bundle.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { createRandom } from '../helpers/random.ts'
import { listAll } from '../helpers/tracked-harness.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createWalletBench, type Outcome } from '../helpers/wallets.ts'
import { readChain } from './polkadot-reference.ts'
import { readNumbers, runSeeds } from './program.ts'
import { nativeSumOf } from './record-sums.ts'

/** What one seed came to. */
export type KillOutcome = Record<
  'kills' | 'blocks' | 'transfers' | 'fees' | 'sums' | 'shown',
  number
>

const tracked = [100, 101, 102, 103, 104]
const unit = 10n ** 12n

type Process = { child: ChildProcess; line: string; kill(): Promise<void> }

async function run(file: string, ...args: string[]): Promise<Process> {
  const child = spawn(process.execPath, [await bundledProgram(file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout! })
  const first = await Promise.race([once(lines, 'line'), ended])
  if (typeof first[0] !== 'string') throw new Error(`${file} ended with ${first[0]}`)
  return {
    child,
    line: first[0],
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Kills tracker and node in the middle of their work; then everything must be there, once. */
export async function runPolkadotKills(
  { db, connection }: { db: Db; connection: Connection },
  { seed, rounds = 8 }: { seed: number; rounds?: number },
): Promise<KillOutcome> {
  const random = createRandom(seed)
  const directory = await mkdtemp(join(tmpdir(), 'portolan-dot-kill-'))
  const network = `dot-${seed}`
  const startNode = (port: number) =>
    run(
      'devnet/polkadot/main.ts',
      ...['--manual', '--finality', '1', '--seed', `${seed}`],
      ...['--port', `${port}`, '--directory', directory],
    )
  let node = await startNode(0)
  const { node_url } = JSON.parse(node.line) as { node_url: string }
  const http = node_url.replace('ws', 'http')
  const rpc = <result>(method: string, ...params: unknown[]) =>
    callRpc<result>(http, method, params)
  const bench = await createWalletBench(db, 'p', { network })
  const caller = await bench.createCaller()
  const account = (number: number) => Buffer.from(createSigner(seedOf(seed, number)).account)
  const addressOf = (number: number) => `0x${account(number).toString('hex')}`
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
  await caller.call('BatchRegisterAddresses', { wallet_id, addresses: tracked.map(addressOf) })
  const task = JSON.stringify({ connection, network_id: bench.network_id, network, url: node_url })
  const startTracker = () => run('test/faults/polkadot-kill-tracker.ts', task)
  await rpc('dev_mine', 2)
  let tracker = await startTracker()
  const cursor = () => findCursor(db, bench.network_id)
  await waitFor('the beginning', async () => (await cursor()) !== undefined, { timeoutMs: 60_000 })
  const begin = (await cursor())!.block_number

  let kills = 0
  // Everything shown to clients must be there after every kill: final blocks, by their hash.
  const shown = new Map<number, string>()
  const noteFinal = async () => {
    const hash = await rpc<string>('chain_getFinalizedHead')
    const { number } = await rpc<{ number: string }>('chain_getHeader', hash)
    shown.set(Number(number), hash)
  }
  const move = async () => {
    const count = 1 + Math.floor(random() * 3)
    for (let left = count; left > 0; left--) {
      const rich = Math.floor(random() * 9)
      const to = tracked[Math.floor(random() * tracked.length)]!
      const from = random() < 0.3 ? tracked[Math.floor(random() * tracked.length)]! : rich
      // Now and then more than there is: included, failed and paid for.
      const amount =
        random() < 0.15 ? unit * 1_000_000_000n : unit + BigInt(Math.floor(random() * 1e9))
      // A poor account's transfer is refused, which is as good.
      await rpc('dev_transfer', from, addressOf(to), `${amount}`).catch(() => {})
    }
    await rpc('dev_mine', 1 + Math.floor(random() * 2))
    await noteFinal()
  }
  const strike = async () => {
    const choice = random()
    await delay(random() * 60)
    if (choice < 0.6) {
      kills++
      await tracker.kill()
      tracker = await startTracker()
    }
    if (choice > 0.4) {
      kills++
      const moving = move().catch(() => {})
      await delay(random() * 20)
      await node.kill()
      await moving
      node = await startNode(Number(new URL(node_url).port))
      for (const [number, hash] of shown)
        if ((await rpc('chain_getBlockHash', number)) !== hash)
          throw new Error(`seed ${seed}: the node lost block ${number}, which it had shown`)
    }
  }

  try {
    for (let round = 0; round < rounds; round++) {
      await move()
      if (round % 3 === 2) await strike()
    }
    await rpc('dev_mine', 3)
    const reference = await readChain(rpc, { after: begin, accounts: tracked.map(account) })
    await waitFor(
      'the tracker is at the head',
      async () => (await cursor())?.block_number === reference.head,
      { timeoutMs: 60_000 },
    )
    await compare(caller, wallet_id, reference, bench.family.formatAddress)
    for (const { account: one, change } of reference.balances) {
      const address = bench.family.formatAddress(one)
      const sum = nativeSumOf(await listAll(caller, { address, page_size: 100 }))
      if (sum !== change)
        throw new Error(`seed ${seed}: the records of ${address} say ${sum}, the chain ${change}`)
    }
    return {
      kills,
      blocks: reference.head - begin,
      transfers: reference.transfers.length,
      fees: reference.transfers.filter(({ value }) => value === '0').length,
      sums: reference.balances.length,
      shown: shown.size,
    }
  } finally {
    await Promise.all([tracker.kill(), node.kill()])
    await rm(directory, { recursive: true, force: true })
  }
}

async function compare(
  caller: Awaited<ReturnType<Awaited<ReturnType<typeof createWalletBench>>['createCaller']>>,
  wallet_id: string,
  reference: Awaited<ReturnType<typeof readChain>>,
  format: (account: Uint8Array) => string,
): Promise<void> {
  const listed: Outcome[] = []
  let page_token = ''
  do {
    const page = await caller.call('ListTransfers', { wallet_id, page_size: 100, page_token })
    listed.push(...page.transfers)
    page_token = page.pagination.next_page_token
  } while (page_token)
  const wanted = reference.transfers.map(({ from, to, ...rest }) => ({
    ...rest,
    from: format(from),
    to: format(to),
  }))
  const textOf = (one: Outcome) =>
    [
      one.block_height,
      one.transaction_hash,
      one.from,
      one.to,
      one.value,
      one.transaction_fee,
    ].join()
  const [have, want] = [listed.map(textOf).toSorted(), wanted.map(textOf).toSorted()]
  if (JSON.stringify(have) !== JSON.stringify(want))
    throw new Error(`transfers differ: ${JSON.stringify({ have, want }, null, 1)}`)
  await waitFor(
    'the balances are those of the chain',
    async () => {
      const { assets } = await caller.call('ListAssets', {
        wallet_id,
        asset_type: 'ASSET_TYPE_P',
        page_size: 100,
      })
      const balances = new Map<string, string>(
        assets.map(({ address, balance }: Outcome) => [address, balance]),
      )
      return reference.balances.every(
        ({ account, balance }) => (balances.get(format(account)) ?? '0') === balance,
      )
    },
    { timeoutMs: 60_000 },
  )
}

if (import.meta.main) {
  const seeds = readNumbers({ seeds: 50, seed: 1 })
  const database = await startKillableDatabase()
  try {
    const total = await runSeeds(seeds, (seed) => runPolkadotKills(database, { seed }))
    console.log('gapless, exactly once, balances as on the chain and as the records add up:', total)
  } finally {
    await database.stop()
  }
}
