import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { createFakeClock } from '../testing/fake-clock.ts'
import { createHttpTransport } from './http-transport.ts'
import { createTimers } from './timers.ts'
import type { TransportOutcome } from './transport.ts'

type Question = { answer(): void }

/** A node that answers calls on command. */
const start = async () => {
  const clock = createFakeClock()
  const timers = createTimers(clock)
  const questions: Question[] = []
  const reply = (response: ServerResponse, id: number, result: string) =>
    response.end(`{"jsonrpc":"2.0","id":${id},"result":${result}}`)
  const server = createServer(async (request, response) => {
    const { id, method } = JSON.parse(await text(request))
    if (method === 'eth_chainId') reply(response, id, '"0x1"')
    else questions.push({ answer: () => reply(response, id, '"0x2"') })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  const transport = createHttpTransport({
    url: new URL(`http://127.0.0.1:${port}`),
    headers: {},
    maxReplyBytes: 1_000_000,
    connectTimeoutMs: 60_000,
    timers,
    now: clock.now,
    prefix: 'eth',
    isRightChain: () => true,
    onClose: () => {},
  })
  onTestFinished(async () => {
    await transport.stop()
    timers.stop()
    server.closeAllConnections()
    server.close()
  })
  /** Makes a call and waits until it has reached the node. */
  const ask = async () => {
    const outcomes: TransportOutcome[] = []
    const before = questions.length
    transport.send({
      method: 'eth_call',
      params: '[]',
      timeoutMs: 60_000,
      idempotent: true,
      done: (outcome) => outcomes.push(outcome),
    })
    await expect.poll(() => questions.length, { timeout: 20_000 }).toBe(before + 1)
    return { outcomes, question: questions.at(-1) as Question }
  }
  return { clock, ask }
}

test('a node that has become slow is waited for longer each time, until it answers', async () => {
  const { clock, ask } = await start()
  const first = await ask()
  await clock.advance(2_100)
  expect(first.outcomes).toMatchObject([{ failed: 'timeout' }])

  // Given up after the same time again and again, a node that only needs longer would never be of use.
  const second = await ask()
  await clock.advance(3_500)
  expect(second.outcomes).toEqual([])
  second.question.answer()
  await expect.poll(() => second.outcomes, { timeout: 20_000 }).toMatchObject([{ ok: true }])
}, 60_000)

test('calls that were under way together make the patience longer once', async () => {
  const { clock, ask } = await start()
  const together = [await ask(), await ask(), await ask()]
  await clock.advance(2_100)
  for (const { outcomes } of together) expect(outcomes).toMatchObject([{ failed: 'timeout' }])
  const next = await ask()
  await clock.advance(4_100)
  expect(next.outcomes).toMatchObject([{ failed: 'timeout' }])
}, 60_000)
