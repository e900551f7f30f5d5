import { createHash } from 'node:crypto'
import { Address, internal, type MessageRelaxed } from '@ton/core'
import { createPurse, type Purse, type PurseMessage, seqnoOf } from '../../../devnet/ton/purse.ts'
import type { TonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'

/** An account of a test with a key and coins. */
export type Payer = {
  purse: Purse
  address: Address
  /** The stored form. */
  bytes: Buffer
  text: string
  /** Sends messages; they are in the chain's next block. */
  send(...messages: (MessageRelaxed | PurseMessage)[]): Promise<Buffer>
  pay(to: Address | string, value: bigint): Promise<Buffer>
}

/** The stored form of an address. */
export const bytesOf = (address: Address): Buffer =>
  Buffer.concat([Buffer.from([address.workChain & 0xff]), address.hash])

/** The address of a stored form. */
export const addressOf = (bytes: Uint8Array): Address =>
  new Address(Buffer.from(bytes).readInt8(0), Buffer.from(bytes.subarray(1)))

/** A payer by number; without coins until it is funded. */
export const createPayer = (dev: TonDevChain, number: number, workchain = 0): Payer => {
  const purse = createPurse(createHash('sha256').update(`payer ${number}`).digest(), workchain)
  const text = purse.address.toRawString()
  const send: Payer['send'] = (...messages) =>
    dev.chain.push((queued) => {
      const waiting = queued.filter(({ external, account }) => external && account === text)
      const seqno = seqnoOf(dev.chain.account(text).data) + waiting.length
      return purse.order(
        seqno,
        messages.map((message) => ('message' in message ? message : { message })),
      )
    })
  return {
    purse,
    address: purse.address,
    bytes: bytesOf(purse.address),
    text,
    send,
    pay: (to, value) => send(internal({ to, value, bounce: false })),
  }
}

/** Gives coins to payers and lets them use their first order, so that they are deployed. */
export const fundPayers = async (
  dev: TonDevChain,
  payers: readonly Payer[],
  amount = 1_000_000_000_000n,
): Promise<void> => {
  await dev.faucet.sendAndWait(
    payers.map(({ address }) => internal({ to: address, value: amount, bounce: false })),
  )
  for (const { send } of payers) await send()
  await dev.mine(2)
}
