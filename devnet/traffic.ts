import { setTimeout as delay } from 'node:timers/promises'
import type { DevChain } from './dev-chain.ts'
import type { EvmDevChain } from './evm/dev-chain.ts'
import { createEvmTraffic } from './evm/traffic.ts'
import type { DevContracts, DevTag } from './keeper-messages.ts'

/** Something that happens on the local chains all the time. */
export type Traffic = { stop(): Promise<void> }

type Sender = () => Promise<unknown>

/** A tenth of a coin in the smallest unit. */
const tenths: Readonly<Record<DevTag, bigint>> = {
  c: 10n ** 17n,
  q: 10n ** 17n,
  t: 10n ** 8n,
  s: 10n ** 8n,
  p: 10n ** 9n,
}

const everyMs = 5_000
// Running overnight must not fill the memory: anvil keeps every block.
const livelyMs = 30 * 60_000
const slowEveryMs = 60_000
const reorganizeEvery = 36
const reorganizeDepth = 2

/** Sends a little to every target every few seconds, and occasionally replaces blocks of chain c. */
export function startTraffic(options: {
  chains: ReadonlyMap<DevTag, DevChain>
  tokens: ReadonlyMap<DevTag, DevContracts>
  targets: Partial<Record<DevTag, string>>
  reorganize(depth: number): Promise<unknown>
}): Traffic {
  const { chains, tokens, targets, reorganize } = options
  const stopped = new AbortController()
  const begun = Date.now()

  const run = async (tag: DevTag, send: Sender, offsetMs: number) => {
    await delay(offsetMs, undefined, { signal: stopped.signal })
    for (let turn = 1; ; turn++) {
      // A node that is unreachable or busy: the next turn retries.
      await send().catch(() => {})
      const isLively = Date.now() - begun < livelyMs
      if (tag === 'c' && isLively && turn % reorganizeEvery === 0)
        await reorganize(reorganizeDepth).catch(() => {})
      await delay(isLively ? everyMs : slowEveryMs, undefined, { signal: stopped.signal })
    }
  }

  const senderOf = (tag: DevTag, chain: DevChain, target: string): Sender =>
    'reorganize' in chain
      ? createEvmTraffic(chain as EvmDevChain, target, tokens.get(tag))
      : () => chain.fund(target, tenths[tag] * BigInt(1 + Math.floor(Math.random() * 20)))

  const loops = [...chains.keys()].flatMap((tag, index) => {
    const target = targets[tag]
    if (target === undefined) return []
    let last: { chain: DevChain; send: Sender } | undefined
    // A node that was stopped and started is another one.
    const send = async () => {
      const chain = chains.get(tag)
      if (!chain) return
      if (last?.chain !== chain) last = { chain, send: senderOf(tag, chain, target) }
      await last.send()
    }
    return [run(tag, send, index * 1_000).catch(() => {})]
  })
  return {
    stop: async () => {
      stopped.abort()
      await Promise.all(loops)
    },
  }
}
