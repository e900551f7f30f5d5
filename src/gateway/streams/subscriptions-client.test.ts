import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Answer } from '../rpc/answer.ts'
import type { RpcCall } from '../rpc/envelope.ts'
import { refuse } from '../rpc/rpc-error.ts'
import type { Session } from './session.ts'
import type { Subscriptions } from './subscriptions.ts'
import { createClient, type Quota } from './subscriptions-client.ts'

const address = (value: number) => `0x${value.toString(16).padStart(40, '0')}`
const addresses = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => address(from + index))

const createBench = ({
  take,
  inTurn = (_, act) => act(),
  ...others
}: Partial<Quota> & Pick<Quota, 'take'> & Partial<Subscriptions>) => {
  const quota = { organization_id: 'o', take, inTurn }
  const live = new Set<string>()
  let next = 0
  const subscriptions = {
    add: () => {
      const id = `0x${(next++).toString(16)}`
      live.add(id)
      return { id, cancel: () => live.delete(id) }
    },
    whenBegun: (_, go) => go(true),
    ...others,
  } as Partial<Subscriptions> as Subscriptions
  const client = createClient({ subscriptions, subscriber: { push() {}, close() {} }, quota })
  const subscribe = (filter: object): Answer => {
    const answers: Answer[] = []
    const call = { method: 'eth_subscribe', args: ['logs', filter] } as unknown as RpcCall
    const method = { name: 'evm_subscribe' } as Parameters<typeof client.dispatch>[0]
    client.dispatch(method, call, {} as Session, (answer) => answers.push(answer))
    return answers[0]!
  }
  return { client, live, subscribe }
}

test('a key that has reached its quota does not cost the work of its filter', () => {
  const full = refuse('TOO_MANY_OPEN', 'The key is full.')
  const { subscribe, live } = createBench({ take: () => full })
  const address = Object.assign(addresses(3), {
    map: () => {
      throw new Error('compiled')
    },
  })
  expect(subscribe({ address })).toMatchObject({ ok: false, refusal: { reason: 'TOO_MANY_OPEN' } })
  expect(live.size).toBe(0)
})

test('the subscriptions of a closed connection end in turns, and give all back', async () => {
  let held = 0
  const { client, subscribe, live } = createBench({
    take: (terms) => {
      held += terms
      return () => {
        held -= terms
      }
    },
  })
  for (let count = 0; count < 50; count++) subscribe({ address: addresses(1_000, count * 1_000) })
  expect(live.size).toBe(50)
  client.stop()
  expect(live.size).toBe(49)
  await turn()
  expect(live.size).toBe(48)
  for (let left = 60; left > 0; left--) await turn()
  expect([live.size, held]).toEqual([0, 0])
})

test('a few small subscriptions end with their connection at once', () => {
  const { client, subscribe, live } = createBench({ take: () => () => {} })
  for (let count = 0; count < 20; count++) subscribe({ address: address(count) })
  client.stop()
  expect(live.size).toBe(0)
})

test('a large subscription is made in steps, and one whose connection closes meanwhile takes nothing', async () => {
  const steps: (() => void)[] = []
  let held = 0
  const { client, live } = createBench({
    take: (terms) => {
      held += terms
      return () => {
        held -= terms
      }
    },
    inTurn: (_, act) => steps.push(act),
  })
  const answers: Answer[] = []
  const subscribe = (from: number) => {
    const call = {
      ...{ method: 'eth_subscribe', args: ['logs', { address: addresses(1_000, from) }] },
    } as unknown as RpcCall
    const method = { name: 'evm_subscribe' } as Parameters<typeof client.dispatch>[0]
    client.dispatch(method, call, {} as Session, (answer) => answers.push(answer))
  }
  const finish = (count: number) => {
    for (; count > 0; count--) steps.shift()!()
  }
  subscribe(0)
  expect([answers.length, live.size, held]).toEqual([0, 0, 1_010])
  finish(3)
  expect([answers.length, live.size, held]).toEqual([1, 1, 1_010])
  subscribe(1_000)
  finish(2)
  expect(held).toBe(2_020)
  client.stop()
  for (let left = 10; left > 0; left--) await turn()
  expect([answers.length, live.size, held]).toEqual([1, 0, 1_010])
  finish(1)
  expect(answers[1]).toMatchObject({ ok: false })
  expect([answers.length, live.size, held, steps.length]).toEqual([2, 0, 0, 0])
})

test('a connection that closes answers what waits for the feed or for missed blocks, and each is given back', async () => {
  const begins: ((isBegun: boolean) => void)[] = []
  const resumes: (() => void)[] = []
  let held = 0
  const { client, live } = createBench({
    take: () => {
      held++
      return () => held--
    },
    whenBegun: (_, go) => void begins.push(go),
    resume: (_, __, ___, ____, begin) =>
      new Promise((resolve) => {
        resumes.push(() => {
          begin({ id: '0x77', cancel: () => live.delete('0x77') })
          resolve(true)
        })
        live.add('0x77')
      }),
  })
  const answers: Answer[] = []
  const subscribe = (options: object) => {
    const call = { method: 'eth_subscribe', args: ['newHeads', options] } as unknown as RpcCall
    const method = { name: 'evm_subscribe' } as Parameters<typeof client.dispatch>[0]
    client.dispatch(method, call, {} as Session, (answer) => answers.push(answer))
  }
  subscribe({})
  subscribe({ resume: `0x${'1'.repeat(64)}` })
  expect([answers.length, held, live.size]).toEqual([0, 2, 2])
  client.stop()
  expect(answers).toMatchObject([{ ok: false }])
  begins[0]!(true)
  resumes[0]!()
  await turn()
  expect(answers).toMatchObject([{ ok: false }, { ok: false }])
  expect([held, live.size]).toEqual([0, 0])
})
