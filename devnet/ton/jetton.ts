import {
  type Address,
  beginCell,
  Cell,
  contractAddress,
  Dictionary,
  internal,
  type MessageRelaxed,
} from '@ton/core'
import { digest } from './block.ts'
import codes from './contracts/contract-code.json' with { type: 'json' }
import type { Faucet } from './faucet.ts'

/** What a token says of itself. */
export type JettonMetadata = { name: string; symbol: string; decimals: number }

/** A token of the development chain, minted by the faucet. */
export type Jetton = {
  master: Address
  /** Where an owner's tokens are kept. */
  holderOf(owner: Address): Address
  /** Mints for an owner; `forward` coins go along with a notification, none without. */
  mint(owner: Address, amount: bigint, forward?: bigint): Promise<void>
}

const milli = 1_000_000n

/** The message by which an owner sends tokens from their holder account. */
export function jettonTransfer(order: {
  holder: Address
  to: Address
  amount: bigint
  excessTo: Address | null
  forward?: bigint
  payload?: Cell
  value?: bigint
}): MessageRelaxed {
  const { holder, to, amount, excessTo, forward = 0n, payload, value = 100n * milli } = order
  const body = beginCell()
    .storeUint(0x0f8a7ea5, 32)
    .storeUint(0, 64)
    .storeCoins(amount)
    .storeAddress(to)
    .storeAddress(excessTo)
    .storeMaybeRef(null)
    .storeCoins(forward)
    .storeMaybeRef(payload ?? null)
    .endCell()
  return internal({ to: holder, value, bounce: true, body })
}

/** Deploys a token whose admin is the faucet. */
export async function deployJetton(
  { faucet, admin }: { faucet: Faucet; admin: Address },
  { name, symbol, decimals }: JettonMetadata,
): Promise<Jetton> {
  const holderCode = Cell.fromBase64(codes['jetton-holder'])
  const content = writeMetadata({ name, symbol, decimals: String(decimals) })
  const data = beginCell()
    .storeCoins(0)
    .storeAddress(admin)
    .storeRef(content)
    .storeRef(holderCode)
    .endCell()
  const init = { code: Cell.fromBase64(codes['jetton-master']), data }
  const master = contractAddress(0, init)
  await faucet.sendAndWait([internal({ to: master, value: 1_000n * milli, bounce: false, init })])
  return {
    master,
    holderOf: (owner) =>
      contractAddress(0, {
        code: holderCode,
        data: beginCell().storeCoins(0).storeAddress(owner).storeAddress(master).endCell(),
      }),
    mint: async (owner, amount, forward = 0n) => {
      const order = beginCell()
        .storeUint(0x178d4519, 32)
        .storeUint(0, 64)
        .storeCoins(amount)
        .storeAddress(null)
        .storeAddress(null)
        .storeCoins(forward)
        .storeBit(false)
        .endCell()
      const body = beginCell()
        .storeUint(0x15, 32)
        .storeUint(0, 64)
        .storeAddress(owner)
        .storeCoins(50n * milli + forward)
        .storeRef(order)
        .endCell()
      await faucet.sendAndWait([
        internal({ to: master, value: 100n * milli + forward, bounce: true, body }),
      ])
    },
  }
}

/** Metadata on the chain itself (TEP-64): texts by the hash of their names. */
function writeMetadata(texts: Record<string, string>): Cell {
  const entries = Dictionary.empty(Dictionary.Keys.Buffer(32), Dictionary.Values.Cell())
  for (const [key, text] of Object.entries(texts))
    entries.set(digest(key), beginCell().storeUint(0, 8).storeBuffer(Buffer.from(text)).endCell())
  return beginCell().storeUint(0, 8).storeDict(entries).endCell()
}
