import { expect, test } from 'vitest'
import { createFakeUpstream, error, result } from '../testing/fake-upstream.ts'
import { broadcast } from './broadcast.ts'
import type { BroadcastOutcome, RpcReply } from './pool-types.ts'

const raw = '"0x02f8"'

const send = async (
  replies: RpcReply[],
  isMined = false,
): Promise<BroadcastOutcome | undefined> => {
  const upstreams = replies.map((_, index) => createFakeUpstream(`${index}`))
  return broadcast(
    {
      upstreams,
      prefix: 'eth',
      ask: (upstream, { method }, done) => {
        const reply = replies[upstreams.indexOf(upstream as never)] as RpcReply
        if (method === 'eth_sendRawTransaction') done(reply, 1)
        else done(result(isMined ? {} : null), 1)
      },
    },
    raw,
    1_000,
  )
}

test.each([
  error(-32000, 'already known'),
  error(-32010, 'AlreadyKnown'),
  error(-32000, 'transaction already imported'),
])('a pool that has the transaction has taken it: %j', async (reply) => {
  expect(await send([reply])).toMatchObject({ ok: true })
  expect(await send([error(-32000, 'txpool is full'), reply])).toMatchObject({ ok: true })
})

test.each([
  error(3, 'execution reverted: already known'),
  error(-32000, 'failed to validate the transaction: Validation revert: already known'),
  error(-32000, 'execution reverted: nonce too low'),
])('a revert reason with these words is not an answer of the pool: %j', async (reply) => {
  expect(await send([reply], true)).toMatchObject({
    ok: false,
    error: (reply as { error: string }).error,
  })
})

test('a nonce that was used is success only when this transaction used it', async () => {
  const reply = error(-32000, 'nonce too low')
  expect(await send([reply], true)).toMatchObject({ ok: true })
  expect(await send([reply], false)).toMatchObject({ ok: false })
})
