import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { makeBundlesFolder } from '../helpers/bundle.ts'
import { createRandom } from '../helpers/random.ts'
import { check, checkMade } from './cluster-check.ts'
import { disturb } from './cluster-disturb.ts'
import { explain, watchStalls } from './cluster-failures.ts'
import {
  type Account,
  createCaller,
  createTenant,
  type Made,
  type Noted,
  type Outcome,
  pay,
  register,
  revoke,
  useGateway,
} from './cluster-load.ts'
import { checkSent, send } from './cluster-send.ts'
import { startWorld, type World } from './cluster-world.ts'
import { makeNextVersion } from './next-version.ts'

/** The limit of one organization, which asks twice as often. */
const usualPerSecond = 20

/**
 * Runs load and disturbances for some time with each seed, and checks the history after each, when all is quiet. With
 * another version all processes are restarted one after the other during the first seed: from the older version to this
 * one, or from this one to the next.
 */
export async function runCluster(options: {
  seconds: number
  seed: number
  seeds?: number
  /** The folder of an older version. */
  older?: string | undefined
  /** The program of a next version. */
  next?: string | undefined
  /** Between two disturbances, on average. */
  pauseMs?: number | undefined
  /** How many disturbances there are in a seed at least; 9 are each kind once. */
  least?: number | undefined
  counts?: Readonly<Record<string, number>>
  /** Between two blocks of the chain. */
  blockSeconds?: number | undefined
  /** Pauses between requests and payments are so many times the usual ones. */
  slower?: number | undefined
  onEvent?(text: string): void
}): Promise<Outcome> {
  const {
    seconds,
    seed: first,
    seeds = 1,
    older,
    next,
    pauseMs,
    least,
    onEvent = () => {},
  } = options
  const { blockSeconds, slower = 1 } = options
  const { counts = { gateway: 2, api: 2, tracker: 2, courier: 3, sender: 1 } } = options
  const outcome: Outcome = {
    counts: {
      ...{ seeds: 0, requests: 0, retried: 0, disturbances: 0, payments: 0, revocations: 0 },
      ...{ revoked_unheard: 0 },
      sent: 0,
      ...{ admitted: 0, most_in_a_second: 0, exceeded_after_redis_loss: 0 },
      ...{ notifications: 0, repeated: 0 },
    },
    ...{ failed: [], unexplained: [], lost: [], wrong: [], exceeded: [], lateRevocations: [] },
  }
  const world = await startWorld(counts, { older, next, blockSeconds })
  try {
    for (let seed = first; seed < first + seeds; seed++) {
      const isUpgrade = (older ?? next) !== undefined && seed === first
      await runSeed(world, { seed, seconds, isUpgrade, outcome, pauseMs, least, slower, onEvent })
      outcome.counts.seeds!++
      onEvent(
        `${new Date().toISOString()} history of seed ${seed} is checked: ${JSON.stringify(outcome.counts)}`,
      )
    }
    return outcome
  } finally {
    await world.stop()
  }
}

/** One seed, with organizations of its own. */
async function runSeed(
  world: World,
  options: {
    seed: number
    seconds: number
    isUpgrade: boolean
    outcome: Outcome
    pauseMs: number | undefined
    least: number | undefined
    slower: number
    onEvent(text: string): void
  },
): Promise<void> {
  const { seed, seconds, isUpgrade, outcome, pauseMs, least, slower, onEvent } = options
  const perSecond = usualPerSecond / slower
  const noted: Noted = { failures: [], faults: [] }
  const call = createCaller(world, outcome, noted)
  const stalls = watchStalls(noted.faults)
  const random = createRandom(seed)
  const loaded = await createTenant(world, call, { name: `load-${seed}`, per_second_limit: -1 })
  const { organization_id, pair: member } = loaded
  const path = `/hook/${seed}`
  await call(member, 'c/RegisterWebhook', {
    webhook_endpoint: new URL(path, world.receiverUrl).href,
    confirmation: 1,
  })
  await call(member, 'c/RegisterContract', {
    ...{ contract_address: world.token, contract_type: 'CONTRACT_TYPE_ERC20' },
  })
  const accounts: Account[] = []
  const made: Made = { webhooks: new Map(), keys: [] }
  const webhook_endpoint = new URL(`/more/${seed}`, world.receiverUrl).href
  const owner = { name: `owner-${seed}`, per_second_limit: -1 }
  const sender = (await createTenant(world, call, owner)).pair
  const limited = { name: `limited-${seed}`, per_second_limit: perSecond }
  const { api_key } = (await createTenant(world, call, limited)).pair
  let until = Date.now() + seconds * 1000
  let isDisturbing = true
  // A short run ends when every disturbance has happened.
  const isOver = () => Date.now() >= until && !isDisturbing
  const { faults } = noted
  const disturbing = disturb(world, {
    ...{ isOver: () => Date.now() >= until, random, outcome, faults, pauseMs, least },
    ...{ onEvent, isUpgrade },
  }).finally(() => {
    isDisturbing = false
  })
  const [sending] = await Promise.all([
    send(world, call, { member: sender, isOver, outcome }),
    register(call, { member, accounts, made, webhook_endpoint, isOver, slower, outcome }),
    pay(world, { accounts, isOver, slower, random, outcome }),
    useGateway(world, { api_key, perSecond, isOver, slower, outcome, noted }),
    revoke(world, call, { organization_id, isOver, outcome, noted, made }),
    disturbing.catch((error: unknown) => {
      // The load ends as well.
      until = 0
      throw error
    }),
  ])
  stalls.stop()
  onEvent('load is over')
  for (const failure of noted.failures) {
    const reason = explain(failure, faults)
    const { from, to, text } = failure
    if (reason === undefined)
      outcome.unexplained.push(`${new Date(from).toISOString()} +${to - from} ms ${text}`)
    else outcome.counts[reason] = (outcome.counts[reason] ?? 0) + 1
  }
  await check(world, call, { member, accounts, outcome, path })
  await checkMade(world, call, { member, made, outcome })
  await checkSent(world, call, { member: sender, sending, outcome })
}

if (import.meta.main) {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))
  const { values } = parseArgs({
    options: {
      ...{ seconds: { type: 'string', default: '180' }, seed: { type: 'string', default: '1' } },
      ...{ seeds: { type: 'string', default: '1' }, older: { type: 'string' } },
      ...{ pause: { type: 'string' }, least: { type: 'string' } },
      // Restarts all processes with a next version during the first seed, as the test does.
      next: { type: 'boolean' },
    },
  })
  // The processes are started many times: the sources of a thousand modules take twice the time of a bundle.
  const bundles = makeBundlesFolder()
  process.once('exit', () => rmSync(bundles, { recursive: true, force: true }))
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text))
  await using next = values.next ? await makeNextVersion() : undefined
  const outcome = await runCluster({
    next: next?.program,
    ...{ seconds: Number(values.seconds), seed: Number(values.seed), seeds: Number(values.seeds) },
    ...{ older: values.older, pauseMs: number(values.pause), least: number(values.least) },
    onEvent: (text) => console.log(text),
  })
  const { counts, ...faults } = outcome
  console.log(JSON.stringify(counts))
  for (const [name, list] of Object.entries(faults))
    if (list.length > 0) {
      console.log(name, list.length, list.slice(0, 10))
      process.exitCode = 1
    }
}
