import { transactionTransitions } from '../../src/contract/records/states.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { isOnTheWay } from '../../src/storage/transactions/record.ts'
import type { TransactionRow } from '../../src/storage/transactions/transactions.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers, runSeeds } from './program.ts'
import { createSenderWorld, type SenderWorld } from './sender-world.ts'

/** What one run came to. */
export type SenderOutcome = {
  transactions: number
  moves: number
  crashes: number
  arrows: Set<string>
}

const arrows = new Set(
  transactionTransitions.flatMap(({ from, to }) =>
    (from ?? ['-']).map((state) => `${state} ${to}`),
  ),
)
const never = new AbortController().signal
const short = (text: string) => text.replaceAll('TRANSACTION_STATE_', '')

/**
 * Lets users, nodes, blocks and deaths do what they want in any order. After every step each state
 * must have come about along the arrows of the table, each arrow notified to the webhook once; in the
 * end everything that was sent must stand as the chain says, and nothing of it be forgotten.
 */
export const runSenderModel = async (
  db: Db,
  { seed, steps }: { seed: number; steps: number },
): Promise<SenderOutcome> => {
  const random = createRandom(seed)
  const world = await createSenderWorld(db, { random, network: `sender-${seed}` })
  const { chance, pick } = world
  await world.track({ deadly: false })
  let notified = new Set<string>()
  for (let step = 0; step < steps; step++) {
    for (let left = 1 + pick(6); left > 0; left--) await world.operate()
    if (chance(0.5)) await world.grow()
    if (chance(0.3)) await world.crowd()
    if (chance(0.2)) world.impoverish()
    if (chance(0.2)) await world.fork()
    if (chance(0.2)) await world.bounce()
    while (chance(0.2)) await world.comeBack()
    if (chance(0.7)) await world.track({ deadly: true })
    if (chance(0.5)) world.wait(pick(90_000))
    if (chance(0.7)) await world.sweep({ deadly: true })
    if (chance(0.3)) await world.expire({ deadly: true })
    notified = await checkPaths(world, `seed ${seed}, step ${step}`)
  }
  world.enrich()
  for (let round = 0; round < 12; round++) {
    world.wait(60_000)
    await world.track({ deadly: false })
    await world.sweep({ deadly: false })
    world.chain.mine(world.chain.sending.takeMinable())
  }
  await world.track({ deadly: false })
  notified = await checkPaths(world, `seed ${seed}, the end`)
  await world.sweep({ deadly: false })
  const rows = await rowsOf(world)
  for (const row of rows) await checkEnd(world, row, `seed ${seed}, ${row.transaction_id}`)
  return {
    transactions: rows.length,
    moves: notified.size,
    crashes: world.crashes(),
    arrows: new Set([...notified].map((one) => one.split('|')[1]!)),
  }
}

const rowsOf = async ({ db, network_id }: SenderWorld): Promise<TransactionRow[]> =>
  (await db
    .selectFrom('managed_transaction')
    .selectAll()
    .where('network_id', '=', network_id)
    .execute()) as TransactionRow[]

/** Every state was reached along arrows, and the webhooks were notified of each one; returns the moves. */
async function checkPaths(world: SenderWorld, where: string): Promise<Set<string>> {
  const { db, network_id, users } = world
  const moves = new Set<string>()
  const rows = await rowsOf(world)
  checkNonces(world, rows, where)
  const deliveries = await db
    .selectFrom('delivery')
    .select(['webhook_id', 'data', 'sequence'])
    .where('network_id', '=', network_id)
    .where('due_block', 'is', null)
    .orderBy('sequence')
    .execute()
  for (const row of rows) {
    const { webhook_id } = users.find(
      ({ caller }) => caller.organization_id === row.organization_id,
    )!
    const path = deliveries
      .filter((delivery) => delivery.webhook_id === webhook_id)
      .map(({ data }) => (data as { transaction?: Record<string, string> }).transaction)
      .filter((notified) => notified?.transaction_id === row.transaction_id)
      .map((notified) => notified!.transaction_state!)
    if (path.at(-1) !== row.transaction_state)
      throw new Error(`${where}: ${row.transaction_state} was not notified, but ${path}`)
    for (const [at, state] of path.entries()) {
      const arrow = `${path[at - 1] ?? '-'} ${state}`
      if (!arrows.has(arrow)) throw new Error(`${where}: no arrow ${arrow} in ${path}`)
      moves.add(`${row.organization_id}/${row.transaction_id}/${at}|${short(arrow)}`)
    }
  }
  return moves
}

/** No two open transactions of an organization have a nonce that neither of them asked for. */
function checkNonces({ explicitNonces }: SenderWorld, rows: TransactionRow[], where: string): void {
  const holders = new Map<string, string>()
  for (const row of rows) {
    const { organization_id, transaction_id, transaction_state, from, nonce } = row
    const isOpen = ['CREATED', 'SIGNED', 'SENDING', 'SENT'].includes(short(transaction_state))
    if (!isOpen || explicitNonces.has(`${organization_id}/${transaction_id}`)) continue
    const key = `${organization_id}/${from.toString('hex')}/${nonce}`
    const other = holders.get(key)
    if (other) throw new Error(`${where}: ${other} and ${transaction_id} were given nonce ${nonce}`)
    holders.set(key, transaction_id)
  }
}

/** Holds a transaction against the chain and the pool of the nodes. */
async function checkEnd({ chain }: SenderWorld, row: TransactionRow, where: string): Promise<void> {
  const use = chain
    .canonical()
    .flatMap((block) => block.sent ?? [])
    .find(({ from, nonce }) => nonce === row.nonce && from.equals(row.from))
  const isOwn = row.transaction_hash !== null && use?.hash().equals(row.transaction_hash) === true
  const pooled = [...chain.sending.pool.values()].some(
    ({ hash }) => row.transaction_hash !== null && hash.equals(row.transaction_hash),
  )
  // Dearer, and waiting for a lower nonce as well: only a block decides between the two.
  const hasRival = [...chain.sending.pool.values()].some(
    ({ from, nonce }) => nonce === row.nonce && from.equals(row.from),
  )
  const says = short(row.transaction_state)
  const fail = (wanted: string) => {
    throw new Error(
      `${where}: is ${says}, and should be ${wanted}: ${JSON.stringify(row.last_error)}`,
    )
  }
  if (['CREATED', 'SIGNED', 'CANCELED'].includes(says)) {
    if (isOwn || pooled) fail('on its way: a node has it')
  } else if (isOwn) {
    const wanted = use?.failed ? 'REVERTED' : 'CONFIRMED'
    if (says !== wanted) fail(wanted)
  } else if (use) {
    if (says !== 'REPLACED') fail('REPLACED')
    if (!row.replaced_by?.equals(use.hash())) fail('replaced by the one on the chain')
  } else if (!isOnTheWay(row) || !(pooled || hasRival)) fail('on its way and in the pool')
  else if (pooled) {
    const next = await chain.sending.transactionCount(row.from, 'pending', never)
    const waits = row.last_error ?? ''
    if (next < row.nonce && !waits.includes(`nonce ${next}`)) fail(`waiting for nonce ${next}`)
  }
}

if (import.meta.main) {
  const { steps, ...seeds } = readNumbers({ seeds: 100, seed: 1, steps: 40 })
  const database = await startKillableDatabase()
  try {
    const walked = new Set<string>()
    const total = await runSeeds(seeds, async (seed) => {
      const { arrows, ...counts } = await runSenderModel(database.db, { seed, steps })
      for (const arrow of arrows) walked.add(arrow)
      return counts
    })
    console.log('every state as the table and the chain say:', total, [...walked].sort())
  } finally {
    await database.stop()
  }
}
