import { Cell, loadMessage, loadTransaction, type Transaction } from '@ton/core'
import { messageCellsOf } from './message-cells.ts'
import type { FoundTransaction } from './store.ts'

/** A transaction as API v3 shows it: without its cells, with what an indexer read in them. */
export function transactionV3({ wire, workchain, shard, seqno, mc_seqno }: FoundTransaction) {
  const { account, data } = JSON.parse(wire) as { account: string; data: string }
  const cell = Cell.fromBase64(data)
  const transaction = loadTransaction(cell.beginParse())
  const messages = messageCellsOf(cell)
  return {
    account: account.toUpperCase(),
    hash: cell.hash().toString('base64'),
    lt: String(transaction.lt),
    now: transaction.now,
    mc_block_seqno: mc_seqno,
    block_ref: { workchain, shard: shard.toUpperCase(), seqno },
    total_fees: String(transaction.totalFees.coins),
    description: descriptionV3(transaction.description),
    in_msg: messages.in ? messageV3(messages.in) : null,
    out_msgs: messages.out.map(messageV3),
    finality: 'finalized',
  }
}

function descriptionV3(description: Transaction['description']) {
  if (description.type !== 'generic') return { type: description.type }
  const { computePhase, bouncePhase, actionPhase, aborted } = description
  return {
    type: 'ord',
    aborted,
    compute_ph:
      computePhase.type === 'skipped'
        ? { skipped: true, reason: computePhase.reason.replace('-', '_') }
        : { skipped: false, success: computePhase.success, exit_code: computePhase.exitCode },
    ...(actionPhase && {
      action: { success: actionPhase.success, result_code: actionPhase.resultCode },
    }),
    ...(bouncePhase && { bounce: { type: bouncePhase.type } }),
  }
}

const upper = (address: { toRawString(): string }): string => address.toRawString().toUpperCase()

function messageV3(cell: Cell) {
  const { info, body } = loadMessage(cell.beginParse())
  const internal = info.type === 'internal' ? info : undefined
  return {
    hash: cell.hash().toString('base64'),
    source: internal ? upper(internal.src) : null,
    destination: info.type === 'external-out' ? null : upper(info.dest),
    value: internal ? String(internal.value.coins) : null,
    fwd_fee: internal ? String(internal.forwardFee) : null,
    extra_flags: internal ? String(internal.ihrFee) : null,
    created_lt: info.type === 'external-in' ? null : String(info.createdLt),
    bounce: internal?.bounce ?? null,
    bounced: internal?.bounced ?? null,
    message_content: {
      hash: body.hash().toString('base64'),
      body: body.toBoc().toString('base64'),
    },
  }
}
