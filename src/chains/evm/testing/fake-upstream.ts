import type { RpcReply } from '../pool/pool-types.ts'
import { createUpstream, type Upstream, type UpstreamOptions } from '../pool/upstream.ts'
import type { TransportCall, TransportOutcome } from '../transport/transport.ts'

/** A node without a network, for tests: with scripted answers. */
export type FakeUpstream = Upstream & {
  calls: TransportCall[]
  /** How many calls fit. */
  room: number
  /** Answers the oldest call that waits. */
  answer(outcome: TransportOutcome): void
  /** Answers every further call by itself. */
  behave: ((call: TransportCall) => TransportOutcome | undefined) | undefined
}

/** A result, as a reply. */
export const result = (value: unknown): RpcReply => ({ ok: true, result: JSON.stringify(value) })

/** An error, as a reply. */
export const error = (code: number, message: string): RpcReply => ({
  ok: false,
  error: JSON.stringify({ code, message }),
})

/** Healthy by default. */
export function createFakeUpstream(
  name: string,
  options: Partial<UpstreamOptions> & { head?: number } = {},
): FakeUpstream {
  const calls: TransportCall[] = []
  const upstream = createUpstream(
    name,
    { url: '', ...options },
    {
      kind: 'http',
      send: (call) => {
        const outcome = fake.behave?.(call)
        if (outcome) setImmediate(() => call.done(outcome))
        else calls.push(call)
      },
      abandon: (detail) => {
        for (const call of calls.splice(0)) call.done({ failed: 'stalled', detail })
      },
      isOpen: () => true,
      capacity: () => fake.room,
      stop: async () => {},
    },
  )
  const fake: FakeUpstream = Object.assign(upstream, {
    calls,
    room: 1_000,
    answer: (outcome: TransportOutcome) => calls.shift()!.done(outcome),
    behave: undefined,
    isVerified: true,
    isReachable: true,
    wasProbed: true,
    isExplored: true,
    chainId: 1,
    head: headOf(options.head ?? 100),
  })
  return fake
}

/** A head of that number. */
export const headOf = (number: number) => ({
  number,
  hash: `0x${number.toString(16).padStart(64, '0')}`,
  parent_hash: `0x${(number - 1).toString(16).padStart(64, '0')}`,
  timestamp: number,
})
