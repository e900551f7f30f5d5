import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createRandom } from '../helpers/random.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { disturb, type Span } from './cluster-disturb.ts'
import { explain, type Failure, type Fault } from './cluster-failures.ts'
import { type Member, startWorld, type World } from './cluster-world.ts'

/** What a run of the cluster came to. Everything below `counts` must be empty. */
export type Outcome = {
  counts: Record<string, number>
  /** Requests that failed although they were repeated for a minute. */
  failed: string[]
  /** Single requests that failed without a reason (`cluster-failures.ts`); `counts` has those with one. */
  unexplained: string[]
  /** Acknowledged wallets and addresses that are not there. */
  lost: string[]
  /** Payments that are missing or doubled, gaps in sequences, balances that differ from the chain. */
  wrong: string[]
  /** Seconds in which an organization was admitted more often than its limit. */
  exceeded: string[]
  /** Processes that still accepted a deleted key after a second. */
  lateRevocations: string[]
}

const perSecond = 20
const retryMs = 60_000

type Noted = { failures: Failure[]; faults: Fault[] }

/** Calls an operation through the load balancer, again and again until it is answered. */
function createCaller({ port }: Pick<World, 'port'>, outcome: Outcome, { failures }: Noted) {
  return async (pair: Pair, at: string, body: object, key?: string) => {
    const path = `/v1/${at}`
    const text = JSON.stringify(body)
    const deadline = Date.now() + retryMs
    let last = ''
    while (Date.now() < deadline) {
      outcome.counts.requests!++
      const from = Date.now()
      let isAnswered = false
      try {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...(key !== undefined && { 'idempotency-key': key }),
            ...authHeaders(pair, { path, body: text }),
          },
          body: text,
          signal: AbortSignal.timeout(30_000),
        })
        // biome-ignore lint/suspicious/noExplicitAny: the program looks at members of any answer
        const json = (await answer.json()) as any
        if (answer.status === 200) return json
        last = `${answer.status} ${JSON.stringify(json).slice(0, 200)}`
        isAnswered = answer.status === 429
        if (answer.status < 500 && answer.status !== 429 && answer.status !== 401) break
      } catch (error) {
        last = String(error)
      }
      if (!isAnswered) failures.push({ from, to: Date.now(), role: 'api', text: `${at}: ${last}` })
      outcome.counts.retried!++
      await delay(200)
    }
    outcome.failed.push(`${at}: ${last}`)
    return undefined
  }
}

type Caller = ReturnType<typeof createCaller>
type Account = { wallet_id: string; address: string; payments: Map<string, bigint> }

/**
 * Runs load and disturbances for some time with each seed, and checks the history after each, when all is quiet. With
 * `other`, the folder of an older version, the cluster starts with that version, and all processes are restarted one
 * after the other with this one during the first seed.
 */
export async function runCluster(options: {
  seconds: number
  seed: number
  seeds?: number
  other?: string | undefined
  /** Between two disturbances, on average. */
  pauseMs?: number
  /** How many disturbances there are in a seed at least; 8 are each kind once. */
  least?: number
  counts?: Readonly<Record<string, number>>
  onEvent?(text: string): void
}): Promise<Outcome> {
  const { seconds, seed: first, seeds = 1, other, pauseMs, least, onEvent = () => {} } = options
  const { counts = { gateway: 2, api: 2, tracker: 2, courier: 3, sender: 1 } } = options
  const outcome: Outcome = {
    counts: {
      ...{ seeds: 0, requests: 0, retried: 0, disturbances: 0, payments: 0, revocations: 0 },
      ...{ admitted: 0, most_in_a_second: 0, exceeded_after_redis_loss: 0 },
      ...{ notifications: 0, repeated: 0 },
    },
    ...{ failed: [], unexplained: [], lost: [], wrong: [], exceeded: [], lateRevocations: [] },
  }
  const world = await startWorld(counts, other)
  try {
    for (let seed = first; seed < first + seeds; seed++) {
      const isUpgrade = other !== undefined && seed === first
      await runSeed(world, { seed, seconds, isUpgrade, outcome, pauseMs, least, onEvent })
      outcome.counts.seeds!++
      onEvent(`history of seed ${seed} is checked: ${JSON.stringify(outcome.counts)}`)
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
    onEvent(text: string): void
  },
): Promise<void> {
  const { seed, seconds, isUpgrade, outcome, pauseMs, least, onEvent } = options
  const noted: Noted = { failures: [], faults: [] }
  const call = createCaller(world, outcome, noted)
  const random = createRandom(seed)
  const name = `load-${seed}`
  await world.command('organizations', 'create', name)
  const member = await newKey(world, name)
  await world.command('limits', 'set', name, 'c', '--per-second', '-1')
  const path = `/hook/${seed}`
  await call(member, 'c/RegisterWebhook', {
    webhook_endpoint: new URL(path, world.receiverUrl).href,
    confirmation: 1,
  })
  const accounts: Account[] = []
  const limited = `limited-${seed}`
  await world.command('organizations', 'create', limited)
  await world.command('limits', 'set', limited, 'c', '--per-second', `${perSecond}`)
  const { api_key } = await newKey(world, limited)
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
  await Promise.all([
    register(call, { member, accounts, isOver, outcome }),
    pay(world, { accounts, isOver, random, outcome }),
    useGateway(world, { api_key, isOver, outcome, noted }),
    revoke(world, call, { organization: name, isOver, outcome }),
    disturbing.catch((error: unknown) => {
      // The load ends as well.
      until = 0
      throw error
    }),
  ])
  onEvent('load is over')
  for (const failure of noted.failures) {
    const reason = explain(failure, faults)
    const { from, to, text } = failure
    if (reason === undefined)
      outcome.unexplained.push(`${new Date(from).toISOString()} +${to - from} ms ${text}`)
    else outcome.counts[reason] = (outcome.counts[reason] ?? 0) + 1
  }
  await check(world, call, { member, accounts, outcome, path })
}

/** Makes a key. The command is repeated while the database is down: it talks to PostgreSQL itself. */
async function newKey({ command }: World, organization: string): Promise<Pair> {
  const deadline = Date.now() + retryMs
  while (true)
    try {
      const made = await command('keys', 'create', organization, '--role', 'member', '--json')
      return JSON.parse(made) as Pair
    } catch (error) {
      if (Date.now() > deadline) throw error
      await delay(500)
    }
}

type Load = { isOver(): boolean; outcome: Outcome }

/** Registers wallets with an address each. What was acknowledged must be there at the end. */
async function register(
  call: Caller,
  { member, accounts, isOver }: Load & { member: Pair; accounts: Account[] },
): Promise<void> {
  while (!isOver()) {
    const name = crypto.randomUUID()
    const wallet = await call(member, 'c/RegisterWallet', { name, confirmation: 1 }, name)
    const address = `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(20))).toString('hex')}`
    const { wallet_id } = wallet ?? {}
    const done = wallet_id && (await call(member, 'c/RegisterAddress', { wallet_id, address }))
    if (done) accounts.push({ wallet_id, address, payments: new Map() })
    await delay(accounts.length < 5 ? 0 : 1_000)
  }
}

/** Pays registered addresses on the chain. */
async function pay(
  { anvil }: World,
  { accounts, isOver, random, outcome }: Load & { accounts: Account[]; random(): number },
): Promise<void> {
  const [from] = await anvil.call<string[]>('eth_accounts')
  for (let value = 1_000_000n; !isOver(); value++) {
    const account = accounts[Math.floor(random() * accounts.length)]
    if (account) {
      const sent = { from, to: account.address, value: `0x${value.toString(16)}` }
      const hash = await anvil.call<string>('eth_sendTransaction', [sent])
      account.payments.set(hash, value)
      outcome.counts.payments!++
    }
    await delay(250)
  }
}

/** Asks more than an organization may, over both gateways, and counts what is admitted in any second. */
async function useGateway(
  world: World,
  { api_key, isOver, outcome, noted }: Load & { api_key: string; noted: Noted },
): Promise<void> {
  const { failures, faults } = noted
  const admitted: Span[] = []
  const ask = async () => {
    while (!isOver()) {
      const from = Date.now()
      const answer = await fetch(`http://127.0.0.1:${world.port}/c/mainnet/v1/${api_key}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}',
        signal: AbortSignal.timeout(10_000),
      }).catch((error: unknown) => ({
        status: 0,
        text: async () => `${error} ${(error as Error).cause}`,
      }))
      const text = await answer.text().catch((error: unknown) => String(error))
      const to = Date.now()
      if (answer.status === 200 && text.includes('result')) admitted.push({ from, to })
      else if (answer.status !== 429)
        failures.push({ from, to, role: 'gateway', text: `${answer.status} ${text.slice(0, 200)}` })
      await delay(50)
    }
  }
  await Promise.all([1, 2, 3, 4].map(ask))
  outcome.counts.admitted! += admitted.length
  // It is decided between the beginning and the end of a request: only those count that are in the second as a whole.
  // A hundredth less than a second, because clocks are read in whole milliseconds and a window ends where the next begins.
  const tooMany = (most: number): number[] =>
    admitted
      .map(({ from }) => from)
      .filter((time) => {
        const within = admitted.filter(({ from, to }) => from >= time && to <= time + 990)
        return within.length > most
      })
  // A process that alone is cut off from Redis takes its share beside what the others admit.
  const losses = faults.filter(({ kind }) => kind.startsWith('Redis') || kind === 'partition')
  const wasLost = (time: number) =>
    !world.isStrict && losses.some(({ from, to }) => time > from - 2_000 && time < to + 2_000)
  const exceeded = tooMany(perSecond)
  outcome.counts.most_in_a_second = Math.max(
    outcome.counts.most_in_a_second!,
    ...admitted.map(
      (one) => admitted.filter(({ from, to }) => from >= one.from && to <= one.from + 990).length,
    ),
  )
  // Unless limits are strict, Redis without its counters admits the second of the loss once more, and never more than
  // that, and a process without Redis adds its share of the limit (docs/decisions/limits.md, "Several processes").
  const twice = tooMany(2 * perSecond)
  outcome.counts.exceeded_after_redis_loss! += exceeded.filter(wasLost).length
  for (const time of new Set([...exceeded.filter((one) => !wasLost(one)), ...twice]))
    outcome.exceeded.push(new Date(time).toISOString())
}

/** Deletes a key that every process knows, again and again, and asks each whether it still accepts it. */
async function revoke(
  world: World,
  call: Caller,
  { organization, isOver, outcome }: Load & { organization: string },
): Promise<void> {
  const serving = world.members.filter(({ role }) => role === 'api' || role === 'gateway')
  while (!isOver()) {
    const pair = await newKey(world, organization)
    await Promise.all(serving.map((member) => accepts(member, pair)))
    const { api_key, api_secret } = pair
    // One that is cut off from the database serves keys that it has seen confirmed (docs/decisions/authentication.md).
    const cut = new Set(serving.filter((member) => member.isCut()))
    const deleted = await call(world.admin, 'admin/DeleteCredential', { api_key, api_secret })
    const since = Date.now()
    if (deleted) {
      outcome.counts.revocations!++
      await delay(Math.max(0, since + 1_000 - Date.now()))
      for (const member of serving) {
        if (member.isCut()) cut.add(member)
        const isAccepted = await accepts(member, pair)
        if (isAccepted && !cut.has(member) && !member.isCut())
          outcome.lateRevocations.push(`${member.name} at ${new Date().toISOString()}`)
      }
    }
    await delay(5_000)
  }
}

/** Whether a process answers a call with this key. */
async function accepts({ port, role }: Member, pair: Pair): Promise<boolean> {
  const isApi = role === 'api'
  const path = isApi ? '/v1/c/ListWallets' : `/c/mainnet/v1/${pair.api_key}`
  const body = isApi ? '{}' : '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(isApi && authHeaders(pair, { path, body })),
    },
    body,
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined)
  const text = (await answer?.text().catch(() => '')) ?? ''
  return answer?.status === 200 && (isApi || text.includes('result'))
}

/** Every acknowledged write is there, every payment once, sequences have no gap, balances equal the chain's. */
async function check(
  { anvil, received: all }: World,
  call: Caller,
  {
    member,
    accounts,
    outcome,
    path,
  }: { member: Pair; accounts: Account[]; outcome: Outcome; path: string },
): Promise<void> {
  const mine = () => all.filter((one) => one.path === path)
  const expected = accounts.reduce((sum, { payments }) => sum + payments.size, 0)
  const notified = () => new Set(mine().map(({ hash }) => hash)).size
  await waitFor('all payments are notified', () => notified() >= expected, {
    timeoutMs: 180_000,
    everyMs: 500,
  }).catch((error: Error) => outcome.wrong.push(`${error.message}: ${notified()} of ${expected}`))
  for (const { wallet_id, address, payments } of accounts) {
    const wallet = await call(member, 'c/GetWallet', { wallet_id })
    if (!wallet) outcome.lost.push(wallet_id)
    const seen: { transaction_hash: string; value: string }[] = []
    for (let page_token = ''; ; ) {
      const page = await call(member, 'c/ListTransfers', {
        ...{ wallet_id, page_size: 100 },
        ...(page_token && { page_token }),
      })
      seen.push(...(page?.transfers ?? []))
      page_token = page?.pagination?.next_page_token ?? ''
      if (!page_token) break
    }
    const counted = Map.groupBy(seen, ({ transaction_hash }) => transaction_hash)
    for (const [hash, value] of payments) {
      const records = counted.get(hash) ?? []
      if (records.length !== 1 || records[0]!.value !== `${value}`)
        outcome.wrong.push(`payment ${hash} of ${value} is listed ${records.length} times`)
    }
    if (counted.size !== payments.size)
      outcome.wrong.push(`${address} has ${counted.size} payments instead of ${payments.size}`)
    const balance = BigInt(await anvil.call<string>('eth_getBalance', [address, 'latest']))
    const isEqual = async () => {
      const { assets = [] } =
        (await call(member, 'c/ListAssets', {
          ...{ wallet_id, asset_type: 'ASSET_TYPE_C' },
        })) ?? {}
      const found = assets.find((one: { asset_type: string }) => one.asset_type === 'ASSET_TYPE_C')
      return BigInt(found?.balance ?? 0) === balance
    }
    await waitFor('the balance is that of the chain', isEqual, { everyMs: 500 }).catch(() =>
      outcome.wrong.push(`the balance of ${address} is not ${balance}`),
    )
  }
  const received = mine()
  const sequences = [...new Set(received.map(({ sequence }) => sequence))].sort((a, b) => a - b)
  sequences.forEach((sequence, index) => {
    if (sequence !== index + 1) outcome.wrong.push(`sequence ${index + 1} is missing`)
  })
  const ids = Map.groupBy(received, ({ id }) => id)
  for (const [id, copies] of ids)
    if (new Set(copies.map(({ sequence }) => sequence)).size > 1)
      outcome.wrong.push(`${id} has two numbers`)
  outcome.counts.notifications! += ids.size
  outcome.counts.repeated! += received.length - ids.size
}

if (import.meta.main) {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))
  const { values } = parseArgs({
    options: {
      ...{ seconds: { type: 'string', default: '180' }, seed: { type: 'string', default: '1' } },
      ...{ seeds: { type: 'string', default: '1' }, other: { type: 'string' } },
    },
  })
  const [seconds, seed, seeds] = [values.seconds, values.seed, values.seeds].map(Number)
  const outcome = await runCluster({
    ...{ seconds: seconds!, seed: seed!, seeds: seeds!, other: values.other },
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
