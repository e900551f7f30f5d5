import { type Address, internal, type MessageRelaxed } from '@ton/core'
import { genesisState } from './account.ts'
import { digest } from './block.ts'
import { genesisTime, type TonChain } from './chain.ts'
import { createPurse, type Purse, seqnoOf } from './purse.ts'

/** The account that has everything at the beginning. */
export type FaucetKey = { purse: Purse; key: string; genesis: Map<string, string> }

const wealth = 5_000_000_000n * 1_000_000_000n

/** The faucet of a seed. */
export function createFaucetKey(seed: number): FaucetKey {
  const secret = digest(`faucet ${seed}`)
  const purse = createPurse(secret)
  const { address, init } = purse
  const state = genesisState(address, { init, balance: wealth, utime: genesisTime })
  return { purse, key: secret.toString('hex'), genesis: new Map([[address.toRawString(), state]]) }
}

/** Pays from the faucet. */
export type Faucet = {
  /** Puts messages into the next block; the hash of the order. */
  send(messages: readonly MessageRelaxed[]): Promise<Buffer>
  /** The same, and waits for the transactions that receive them; their hashes. */
  sendAndWait(messages: readonly MessageRelaxed[], signal?: AbortSignal): Promise<Buffer[]>
  pay(to: Address, value: bigint, signal?: AbortSignal): Promise<Buffer>
}

/** `nudge` makes blocks where no timer does. */
export function createFaucet({
  chain,
  purse,
  nudge,
}: {
  chain: TonChain
  purse: Purse
  nudge(): void
}): Faucet {
  const account = purse.address.toRawString()
  const send: Faucet['send'] = (messages) =>
    chain.push((queued) => {
      const waiting = queued.filter((message) => message.external && message.account === account)
      const seqno = seqnoOf(chain.account(account).data) + waiting.length
      return purse.order(
        seqno,
        messages.map((message) => ({ message })),
      )
    })
  const sendAndWait: Faucet['sendAndWait'] = async (messages, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>()
    let order: Buffer | undefined
    let sent: string[] | undefined
    const received = new Map<string, Buffer>()
    const stop = chain.onBlock((_, happened) => {
      for (const { hash, in_hash, out_hashes } of happened) {
        const by = in_hash?.toString('hex')
        if (order && by === order.toString('hex'))
          sent = out_hashes.map((out) => out.toString('hex'))
        else if (by !== undefined && sent?.includes(by)) received.set(by, hash)
      }
      if (sent && received.size === sent.length) resolve(sent.map((out) => received.get(out)!))
      else nudge()
    })
    const onAbort = () => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      signal?.throwIfAborted()
      order = await send(messages)
      nudge()
      return await promise
    } finally {
      stop()
      signal?.removeEventListener('abort', onAbort)
    }
  }
  return {
    send,
    sendAndWait,
    pay: async (to, value, signal) => {
      const [hash] = await sendAndWait([internal({ to, value, bounce: false })], signal)
      if (!hash) throw new Error('the faucet could not pay')
      return hash
    },
  }
}
