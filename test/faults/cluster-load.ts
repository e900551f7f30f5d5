import { setTimeout as delay } from 'node:timers/promises'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import type { Span } from './cluster-disturb.ts'
import {
  type Failure,
  type Fault,
  hasLostDatabase,
  hasLostRedis,
  hasStalled,
  losesRedis,
} from './cluster-failures.ts'
import type { Member, World } from './cluster-world.ts'

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

/**
 * An attempt that breaks off keeps its idempotency key for up to 15 seconds. Of 31,000 calls in an hour one gave up after 60
 * seconds, when its key was in use.
 */
const retryMs = 120_000

/** What failed, and what was done to the cluster. */
export type Noted = { failures: Failure[]; faults: Fault[] }

/**
 * Calls an operation through the load balancer, again and again until it is answered: with the same key, and signed anew
 * each time, as clients have to.
 */
export function createCaller({ port }: Pick<World, 'port'>, outcome: Outcome, { failures }: Noted) {
  return async (pair: Pair, at: string, body: object) => {
    const key = crypto.randomUUID()
    const path = `/v1/${at}`
    const text = JSON.stringify(body)
    const deadline = Date.now() + retryMs
    let last = ''
    const attempts: string[] = []
    while (Date.now() < deadline) {
      outcome.counts.requests!++
      const from = Date.now()
      let isAnswered = false
      try {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'idempotency-key': key,
            ...authHeaders(pair, { path, body: text }),
          },
          body: text,
          signal: AbortSignal.timeout(30_000),
        })
        // biome-ignore lint/suspicious/noExplicitAny: the program looks at members of any answer
        const json = (await answer.json()) as any
        if (answer.status === 200) return json
        // The attempt before has deleted it, and its answer was lost.
        if (json.reason === 'CREDENTIAL_NOT_FOUND' && last !== '') return {}
        last = `${answer.status} ${JSON.stringify(json).slice(0, 200)}`
        // After an attempt that broke off the key is in use for some seconds, and the caller has to wait.
        isAnswered = answer.status === 429 || json.reason === 'IDEMPOTENCY_KEY_IN_USE'
        if (answer.status < 500 && answer.status !== 401 && !isAnswered) break
      } catch (error) {
        last = String(error)
      }
      const to = Date.now()
      if (!isAnswered) failures.push({ from, to, role: 'api', text: `${at}: ${last}` })
      if (!isAnswered) attempts.push(`${new Date(from).toISOString()} +${to - from} ms ${last}`)
      outcome.counts.retried!++
      await delay(200)
    }
    outcome.failed.push(`${at}: ${[...attempts, last].join('\n')}`)
    return undefined
  }
}

/** Calls operations until they are answered. */
export type Caller = ReturnType<typeof createCaller>
/** A wallet with its address, and what was paid to it. */
export type Account = { wallet_id: string; address: string; payments: Map<string, bigint> }

/** Makes an organization and a key of it. */
export async function createTenant(
  { admin }: World,
  call: Caller,
  { name, per_second_limit }: { name: string; per_second_limit: number },
): Promise<{ organization_id: string; pair: Pair }> {
  const made = await call(admin, 'admin/CreateOrganization', { name, domain: name })
  const { organization_id } = made.organization
  await call(admin, 'admin/SetRateLimit', {
    ...{ organization_id, chain: 'c', per_second_limit },
    ...{ per_hour_limit: -1, per_day_limit: -1, per_month_limit: -1 },
  })
  return { organization_id, pair: (await createKey(admin, call, organization_id))! }
}

const createKey = async (
  admin: Pair,
  call: Caller,
  organization_id: string,
): Promise<Pair | undefined> =>
  (await call(admin, 'admin/CreateCredential', { organization_id, role: 'ROLE_MEMBER' }))
    ?.credential

/** Load until it is over. */
export type Load = { isOver(): boolean; outcome: Outcome }
/** The same with pauses so many times the usual ones. */
type Paced = Load & { slower: number }

/** What was made and removed by acknowledged calls, and is there or gone at the end. */
export type Made = { webhooks: Map<string, boolean>; keys: { pair: Pair; isKept: boolean }[] }

/** After so many wallets a webhook is registered; every second one is removed after the next. */
const walletsPerWebhook = 4

/** Registers wallets with an address each, and some webhooks. What was acknowledged must be there at the end. */
export async function register(
  call: Caller,
  {
    member,
    accounts,
    made,
    webhook_endpoint,
    isOver,
    slower,
  }: Paced & { member: Pair; accounts: Account[]; made: Made; webhook_endpoint: string },
): Promise<void> {
  const registerWebhook = async (wallet_id: string) => {
    const body = { webhook_endpoint, confirmation: 1, wallet_id }
    const { webhook_id } = (await call(member, 'c/RegisterWebhook', body)) ?? {}
    const [before] = [...made.webhooks.keys()].slice(-1)
    if (webhook_id) made.webhooks.set(webhook_id, true)
    if (before === undefined || made.webhooks.size % 2 === 0) return
    if (await call(member, 'c/RemoveWebhook', { webhook_id: before }))
      made.webhooks.set(before, false)
  }
  while (!isOver()) {
    const name = crypto.randomUUID()
    const wallet = await call(member, 'c/RegisterWallet', { name, confirmation: 1 })
    const address = `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(20))).toString('hex')}`
    const { wallet_id } = wallet ?? {}
    const done = wallet_id && (await call(member, 'c/RegisterAddress', { wallet_id, address }))
    if (done) accounts.push({ wallet_id, address, payments: new Map() })
    if (done && accounts.length % walletsPerWebhook === 0) await registerWebhook(wallet_id)
    await delay(accounts.length < 5 ? 0 : 1_000 * slower)
  }
}

/** An argument of a call of a contract. */
export const word = (value: string | bigint): string =>
  (typeof value === 'bigint' ? value.toString(16) : value.slice(2)).padStart(64, '0')

/** Pays registered addresses on the chain. */
export async function pay(
  { anvil, token }: World,
  { accounts, isOver, slower, random, outcome }: Paced & { accounts: Account[]; random(): number },
): Promise<void> {
  const [from] = await anvil.call<string[]>('eth_accounts')
  for (let value = 1_000_000n; !isOver(); value++) {
    const account = accounts[Math.floor(random() * accounts.length)]
    if (account) {
      // Every fourth one in tokens.
      const sent =
        value % 4n === 0n
          ? { from, to: token, data: `0x40c10f19${word(account.address)}${word(value)}` }
          : { from, to: account.address, value: `0x${value.toString(16)}` }
      const hash = await anvil.call<string>('eth_sendTransaction', [sent])
      account.payments.set(hash, value)
      outcome.counts.payments!++
    }
    await delay(250 * slower)
  }
}

/** How many calls lie within so many milliseconds from the beginning of each. An hour has 70,000 of them. */
function countSeconds(calls: readonly Span[], ms: number): { time: number; count: number }[] {
  const sorted = calls.toSorted((a, b) => a.from - b.from)
  let first = 0
  return sorted.map(({ from: time }) => {
    while (sorted[first]!.from < time) first++
    let count = 0
    for (let at = first; at < sorted.length && sorted[at]!.from <= time + ms; at++)
      if (sorted[at]!.to <= time + ms) count++
    return { time, count }
  })
}

/** Asks more than an organization may, over both gateways, and counts what is admitted in any second. */
export async function useGateway(
  world: World,
  {
    api_key,
    perSecond,
    isOver,
    slower,
    outcome,
    noted,
  }: Paced & { api_key: string; perSecond: number; noted: Noted },
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
      await delay(20 * slower)
    }
  }
  // Two clients of some twenty calls a second each: twice the limit.
  await Promise.all([1, 2].map(ask))
  outcome.counts.admitted! += admitted.length
  // It is decided between the beginning and the end of a request: only those count that are in the second as a whole.
  // A hundredth less than a second, because clocks are read in whole milliseconds and a window ends where the next begins.
  const seconds = countSeconds(admitted, 990)
  const tooMany = (most: number): number[] =>
    seconds.filter(({ count }) => count > most).map(({ time }) => time)
  // A process that alone is cut off from Redis takes its share beside what the others admit.
  const losses = faults.filter(losesRedis)
  const wasLost = (time: number) =>
    !world.isStrict && losses.some(({ from, to }) => time > from - 2_000 && time < to + 2_000)
  const exceeded = tooMany(perSecond)
  for (const { count } of seconds)
    outcome.counts.most_in_a_second = Math.max(outcome.counts.most_in_a_second!, count)
  // Unless limits are strict, Redis without its counters admits the second of the loss once more, and never more than
  // that, and a process without Redis adds its share of the limit (docs/decisions/limits.md, "Several processes").
  const twice = tooMany(2 * perSecond)
  outcome.counts.exceeded_after_redis_loss! += exceeded.filter(wasLost).length
  for (const time of new Set([...exceeded.filter((one) => !wasLost(one)), ...twice]))
    outcome.exceeded.push(new Date(time).toISOString())
}

/** Deletes a key that every process knows, again and again, and asks each whether it still accepts it. */
export async function revoke(
  world: World,
  call: Caller,
  {
    organization_id,
    isOver,
    outcome,
    noted,
    made,
  }: Load & { organization_id: string; noted: Noted; made: Made },
): Promise<void> {
  const serving = world.members.filter(({ role }) => role === 'api' || role === 'gateway')
  while (!isOver()) {
    const pair = await createKey(world.admin, call, organization_id)
    if (!pair) continue
    // Every third one is kept.
    const isKept = made.keys.length % 3 === 0
    if (isKept) made.keys.push({ pair, isKept })
    if (isKept) continue
    await Promise.all(serving.map((member) => accepts(member, pair)))
    const { api_key, api_secret } = pair
    // Keys that were confirmed are served without the database (docs/decisions/authentication.md).
    const cut = new Set(serving.filter((member) => member.isCutFromKeys()))
    const deleted = await call(world.admin, 'admin/DeleteCredential', { api_key, api_secret })
    const since = Date.now()
    if (deleted) {
      made.keys.push({ pair, isKept })
      outcome.counts.revocations!++
      await delay(Math.max(0, since + 1_000 - Date.now()))
      for (const member of serving) {
        if (member.isCutFromKeys()) cut.add(member)
        const time = () => ({ from: since, to: Date.now() })
        const isDeaf = () =>
          (cut.has(member) || hasLostDatabase(noted.faults, time())) &&
          (!world.isPublishing || hasLostRedis(noted.faults, time()))
        let isAccepted = await accepts(member, pair)
        // A process without both ways learns of the change when one of them is back.
        for (let waited = 0; isAccepted && waited < 60 && isDeaf(); waited++) {
          if (waited === 0) outcome.counts.revoked_unheard!++
          await delay(1_000)
          isAccepted = await accepts(member, pair)
        }
        if (isAccepted && !hasStalled(noted.faults, time()))
          outcome.lateRevocations.push(`${member.name} at ${new Date().toISOString()}`)
      }
    }
    await delay(5_000)
  }
}

/** Whether a process answers a call with this key. */
export async function accepts({ port, role }: Member, pair: Pair): Promise<boolean> {
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
