import { expect, it } from 'vitest'
import { type Channel, createChannel, type Handlers } from './channel.ts'

/** Two sides that reach each other as processes do: by copies of messages. */
const createPair = (handlers: Handlers): { near: Channel; far: Channel } => {
  const near: Channel = createChannel({
    send: (message) => far.receive(structuredClone(message)),
    handlers: {},
  })
  const far: Channel = createChannel({
    send: (message) => near.receive(structuredClone(message)),
    handlers,
  })
  return { near, far }
}

it('answers requests, and passes errors on with what explains them', async () => {
  const failure = Object.assign(new Error('in use'), { code: 'EADDRINUSE', syscall: 'listen' })
  const { near } = createPair({
    double: (value: number) => value * 2,
    fail: () => {
      throw failure
    },
    // Functions cannot be sent.
    odd: () => ({ run() {} }),
  })
  expect(await near.ask('double', 21)).toBe(42)
  await expect(near.ask('fail')).rejects.toMatchObject({
    ...{ message: 'in use', code: 'EADDRINUSE', syscall: 'listen' },
  })
  await expect(near.ask('odd')).rejects.toThrow('could not be cloned')
  await expect(near.ask('nothing')).rejects.toThrow('There is no request nothing.')
})

it('does not wait for a side that is gone or does not answer', async () => {
  const { near } = createPair({ hang: () => new Promise(() => {}) })
  await expect(near.ask('hang', undefined, 5)).rejects.toThrow('No answer to hang within 5 ms.')
  const waiting = near.ask('hang')
  near.close()
  await expect(waiting).rejects.toThrow('ended')
  await expect(near.ask('hang')).rejects.toThrow('ended')
})
