import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { waitFor } from '../../helpers/wait-for.ts'

/** A notification's content. */
export type RawEvent = { event: string; operationId?: string; [field: string]: unknown }

/** What a node answered: its result, or the number of its error. */
export type Answer<result = unknown> = { result?: result; code?: number }

/** A client that shows what a node really sends. */
export type RawClient = {
  socket: WebSocket
  ask<result = unknown>(method: string, ...params: unknown[]): Promise<Answer<result>>
  /** All events of a subscription so far. */
  received(subscription: string): RawEvent[]
  /** Waits for an event of a subscription. */
  wait(subscription: string, event: string, operationId?: string): Promise<RawEvent>
  /** Begins to follow, and gives the subscription when the first events are there. */
  follow(withRuntime: boolean): Promise<string>
}

/** Connects to a node for the rest of a test. */
export async function connectRaw(url: string): Promise<RawClient> {
  const socket = new WebSocket(url)
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  const notes = new Map<string, RawEvent[]>()
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.on('message', (data) => {
    const message = JSON.parse(String(data))
    if (message.params) {
      const { subscription, result } = message.params
      notes.set(subscription, [...(notes.get(subscription) ?? []), result])
    } else
      waiting.get(message.id)?.(
        message.error ? { code: message.error.code } : { result: message.result },
      )
  })
  let count = 0
  const ask = <result>(method: string, ...params: unknown[]) =>
    new Promise<Answer<result>>((resolve) => {
      const id = ++count
      waiting.set(id, resolve as (answer: Answer) => void)
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    })
  const received = (subscription: string) => notes.get(subscription) ?? []
  const wait: RawClient['wait'] = async (subscription, event, operationId) => {
    const find = () =>
      received(subscription).findLast(
        (one) =>
          one.event === event && (operationId === undefined || one.operationId === operationId),
      )
    await waitFor(`${event} of ${operationId ?? subscription}`, () => find() !== undefined)
    return find()!
  }
  return {
    socket,
    ask,
    received,
    wait,
    follow: async (withRuntime) => {
      const { result } = await ask<string>('chainHead_v1_follow', withRuntime)
      await wait(result!, 'bestBlockChanged')
      return result!
    },
  }
}
