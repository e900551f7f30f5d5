import { type Address, type Cell, loadMessage, type Transaction } from '@ton/core'
import type { BlockId } from './block.ts'

/** A block's name in API v2: the shard is a signed decimal number there. */
export const blockIdV2 = ({ workchain, shard, seqno, root_hash, file_hash }: BlockId) => ({
  '@type': 'ton.blockIdExt',
  workchain,
  shard: BigInt.asIntN(64, shard).toString(),
  seqno,
  root_hash: root_hash.toString('base64'),
  file_hash: file_hash.toString('base64'),
})

/** What the account paid: its fees, and the way of its messages. */
const feeOf = ({ totalFees, outMessages }: Transaction): bigint => {
  let fee = totalFees.coins
  for (const { info } of outMessages.values()) if (info.type === 'internal') fee += info.forwardFee
  return fee
}

const messageV2 = (cell: Cell) => {
  const { info, body } = loadMessage(cell.beginParse())
  const internal = info.type === 'internal' ? info : undefined
  return {
    '@type': 'ext.message',
    hash: cell.hash().toString('base64'),
    source: info.type === 'external-in' ? '' : info.src.toString(),
    destination: info.type === 'external-out' ? '' : info.dest.toString(),
    value: String(internal?.value.coins ?? 0n),
    extra_currencies: [],
    fwd_fee: String(internal?.forwardFee ?? 0n),
    ihr_fee: String(internal?.ihrFee ?? 0n),
    created_lt: info.type === 'external-in' ? '0' : String(info.createdLt),
    body_hash: body.hash().toString('base64'),
    msg_data: {
      '@type': 'msg.dataRaw',
      body: body.toBoc().toString('base64'),
      init_state: '',
    },
  }
}

/** The text that API v2 shows of a transaction: made once, because all clients request it. */
export function transactionV2(
  address: Address,
  {
    transaction,
    cell,
    boc,
    messages,
  }: {
    transaction: Transaction
    cell: Cell
    boc: string
    messages: { in: Cell | undefined; out: readonly Cell[] }
  },
): string {
  const fee = String(feeOf(transaction))
  return JSON.stringify({
    '@type': 'ext.transaction',
    address: { '@type': 'accountAddress', account_address: address.toString() },
    account: address.toRawString(),
    utime: transaction.now,
    data: boc,
    transaction_id: {
      '@type': 'internal.transactionId',
      lt: String(transaction.lt),
      hash: cell.hash().toString('base64'),
    },
    fee,
    storage_fee: '0',
    other_fee: fee,
    in_msg: messages.in && messageV2(messages.in),
    out_msgs: messages.out.map(messageV2),
  })
}
