// `subscribe` and `unsubscribe` of one connection. Whatever a subscription takes (its part of the quota, its place in the
// index, the need of the feed) is given back once, also when the connection ends while the subscription is being made.

import type { Dispatch } from '../rpc/answer.ts'
import { type Answer, answered, failed, type OnAnswer, refused } from '../rpc/answer.ts'
import { findFilterProblem, findRangeProblem, type LogFilter } from '../rpc/check-filter.ts'
import { isHash } from '../rpc/encodings.ts'
import { type Refusal, refuse } from '../rpc/rpc-error.ts'
import { compileLogQuery } from '../rpc/topics.ts'
import { termsOf, termsOfOne, termsPerTurn } from './filter-budget.ts'
import {
  keyOfTopic,
  type Order,
  type Subscriber,
  type Subscription,
  type Subscriptions,
  type Topic,
} from './subscriptions.ts'

/** The subscriptions of one connection; they end with it (spec 6.2.2). */
export type Client = {
  /** Answers `subscribe` and `unsubscribe`. */
  dispatch: Dispatch
  /** The number of its subscriptions by their name. */
  counts(): Record<string, number>
  stop(): void
}

/** What a key may have, over all its connections: a refusal, or what gives it back. */
export type Quota = {
  organization_id: string
  take(terms: number): (() => void) | Refusal
  /** Does one step of making a subscription, in a turn of its own where it is large. */
  inTurn(terms: number, act: () => void): void
}

/** What a subscription holds until it ends. */
type Holding = { name: string; key: string; terms: number; release(): void }

const yes = answered('true')
const no = answered('false')

const invalid = (message: string): Refusal =>
  refuse('INVALID_PARAMS', `parameter 2 (options) ${message}`, { parameter: 'options', index: 1 })
const resumeLost = refuse(
  'RESUME_BLOCK_NOT_FOUND',
  'The block to resume from is not among the last ones of the chain.',
)

/** Opens the book of one connection. */
export function createClient(options: {
  subscriptions: Subscriptions
  subscriber: Subscriber
  quota: Quota
}): Client {
  const { subscriptions, subscriber, quota } = options
  const own = new Map<string, Subscription & { name: string; terms: number }>()
  // Equal subscriptions of one connection must have different ids, and so different numbers.
  const equals = new Map<string, { live: number; next: number }>()
  const waiting = new Set<() => void>()
  let isStopped = false

  // Numbers are not reused while equal subscriptions live: ids derive from them.
  const countOf = (key: string): number => {
    const known = equals.get(key) ?? { live: 0, next: 0 }
    equals.set(key, known)
    known.live++
    return known.next++
  }

  const give = ({ key, release }: Holding) => {
    release()
    const known = equals.get(key)
    if (known && --known.live === 0) equals.delete(key)
  }

  const keep = ({ id, cancel }: Subscription, held: Holding, done: OnAnswer) => {
    own.set(id, {
      ...{ id, name: held.name, terms: held.terms },
      cancel: () => {
        cancel()
        give(held)
      },
    })
    done(answered(`"${id}"`))
  }

  const resume = (topic: Topic, order: Order, held: Holding, from: string, done: OnAnswer) => {
    const fail = () => {
      give(held)
      done(refused(resumeLost))
    }
    subscriptions
      .resume(subscriber, topic, order, from, (subscription) => {
        if (!isStopped) return keep(subscription, held, done)
        // The connection ended while the missed blocks were fetched.
        subscription.cancel()
        give(held)
        done(failed('ABORTED'))
      })
      .then((isThere) => isThere || fail(), fail)
  }

  const subscribe: Dispatch = (_, { method: name, args }, __, done) => {
    const asked = checkTopic(args[0] as string, args[1])
    if ('reason' in asked) return done(refused(asked))
    const from = resumeOf(args[1])
    if (from !== undefined && !isHash(from)) return done(refused(invalid('resume must be a hash')))
    const terms = asked.name === 'logs' ? termsOf(asked.filter) : termsOfOne
    // Taken before the subscription exists: concurrent requests of one key cannot exceed its quota. And before its
    // filter is compiled: a key that has reached its quota must not cost that work.
    const release = quota.take(terms)
    if ('reason' in release) return done(refused(release))
    const step = (act: () => void) =>
      quota.inTurn(terms, () => {
        if (!isStopped) return act()
        release()
        done(failed('ABORTED'))
      })
    step(() => {
      const topic: Topic =
        asked.name === 'logs' ? { name: 'logs', query: compileLogQuery(asked.filter) } : asked
      const method = name.replace(/_subscribe$/, '_subscription')
      step(() => {
        const key = `${method} ${keyOfTopic(topic)}`
        step(() => {
          const held = { name: topic.name, key, terms, release }
          const { organization_id } = quota
          const order = { method, organization_id, key: `${countOf(key)} ${key}` }
          if (from !== undefined && (topic.name === 'newHeads' || topic.name === 'logs'))
            return resume(topic, order, held, from.toLowerCase(), done)
          begin(subscriptions.add(subscriber, topic, order), topic, held, done)
        })
      })
    })
  }

  /** Answers once nothing that comes later can be missed. */
  const begin = (subscription: Subscription, topic: Topic, held: Holding, done: OnAnswer) => {
    const { id, cancel } = subscription
    // The connection may close, or the feed fail to begin, before the answer: whichever is first gives back.
    const fail = (answer: Answer) => {
      cancel()
      give(held)
      done(answer)
    }
    const abort = () => fail(failed('ABORTED'))
    waiting.add(abort)
    subscriptions.whenBegun(topic, (isBegun) => {
      if (!waiting.delete(abort)) return
      if (isBegun) keep({ id, cancel }, held, done)
      else fail(failed('NO_UPSTREAM'))
    })
  }

  const unsubscribe: Dispatch = (_, { args }, __, done) => {
    // Ids are hex; clients may send them in any case.
    const id = String(args[0]).toLowerCase()
    const subscription = own.get(id)
    if (!subscription) return done(no)
    own.delete(id)
    subscription.cancel()
    done(yes)
  }

  /** Ends all subscriptions in turns: a key may have 100,000 addresses, and other clients wait meanwhile. */
  const cancelSome = () => {
    let terms = 0
    for (const [id, subscription] of own) {
      if (terms > 0 && terms + subscription.terms > termsPerTurn)
        return void setImmediate(cancelSome)
      terms += subscription.terms
      own.delete(id)
      subscription.cancel()
    }
  }

  return {
    dispatch: (method, call, session, done) => {
      // The call may have waited for longer than the connection was open.
      if (isStopped) return done(failed('ABORTED'))
      const answer = method.name.endsWith('_subscribe') ? subscribe : unsubscribe
      answer(method, call, session, done)
    },
    counts() {
      const counts: Record<string, number> = {}
      for (const { name } of own.values()) counts[name] = (counts[name] ?? 0) + 1
      return counts
    },
    stop() {
      isStopped = true
      for (const abort of waiting) {
        waiting.delete(abort)
        abort()
      }
      cancelSome()
    },
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const resumeOf = (options: unknown): string | undefined => {
  if (!isObject(options) || options.resume == null) return undefined
  return String(options.resume)
}

type Asked = Exclude<Topic, { name: 'logs' }> | { name: 'logs'; filter: LogFilter }

function checkTopic(name: string, options: unknown): Asked | Refusal {
  if (name === 'newHeads' || name === 'newPendingTransactions' || name === 'syncing')
    return { name }
  if (name !== 'logs')
    return refuse(
      'RPC_METHOD_NOT_FOUND',
      `There is no subscription ${JSON.stringify(name.slice(0, 50))}.`,
    )
  // `resume` is an extension of this service; the checks of filters refuse members that they do not know.
  const { resume: _, ...filter } = isObject(options) ? options : {}
  const problem = findFilterProblem(filter) ?? findRangeProblem(filter as LogFilter)
  return problem ? invalid(problem) : { name, filter: filter as LogFilter }
}
