import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import {
  type Address,
  beginCell,
  Cell,
  contractAddress,
  external,
  type MessageRelaxed,
  type StateInit,
  storeMessage,
  storeMessageRelaxed,
} from '@ton/core'
import codes from './contracts/contract-code.json' with { type: 'json' }

/** An account of the development chain that is paid from with a key. */
export type Purse = {
  address: Address
  init: StateInit
  /** Signs an order of up to 255 messages; the external message as cells. */
  order(seqno: number, messages: readonly PurseMessage[]): Buffer
}

/** A message, and how it is sent: 1 pays its way beside its value, 3 is left out if it fails. */
export type PurseMessage = { message: MessageRelaxed; mode?: number }

// What stands before the 32 bytes of a key in PKCS #8.
const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The purse of a key of 32 bytes. */
export function createPurse(seed: Buffer, workchain = 0): Purse {
  const key = createPrivateKey({ key: Buffer.concat([prefix, seed]), format: 'der', type: 'pkcs8' })
  const data = beginCell().storeUint(0, 32).storeBuffer(publicKeyOf(key)).endCell()
  const init: StateInit = { code: Cell.fromBase64(codes.purse), data }
  const address = contractAddress(workchain, { code: init.code!, data })
  return {
    address,
    init,
    order: (seqno, messages) => {
      // Written from the last to the first, because each one refers to the next.
      const chain = messages.toReversed().reduce<Cell | null>(
        (next, { message, mode = 1 }) =>
          beginCell()
            .storeUint(mode, 8)
            .storeRef(beginCell().store(storeMessageRelaxed(message)))
            .storeMaybeRef(next)
            .endCell(),
        null,
      )
      const order = beginCell()
        .storeUint(seqno, 32)
        .storeUint(0xffff_ffff, 32)
        .storeMaybeRef(chain)
        .endCell()
      const signature = sign(null, order.hash(), key)
      const body = beginCell().storeBuffer(signature).storeSlice(order.beginParse()).endCell()
      const message = external({ to: address, body, ...(seqno === 0 && { init }) })
      return beginCell().store(storeMessage(message)).endCell().toBoc()
    },
  }
}

const publicKeyOf = (key: KeyObject): Buffer =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)

/** The number of the next order, as the purse's storage has it. */
export const seqnoOf = (data: Cell | null): number => data?.beginParse().loadUint(32) ?? 0
