import { Cell, loadMessage, loadTransaction, type Transaction } from '@ton/core'
import type { AccountView } from './account.ts'
import type { Block } from './block.ts'
import type { JettonWallet } from './jetton-wallets.ts'
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

const shardV3 = (shard: bigint): string => shard.toString(16).padStart(16, '0').toUpperCase()

/** A block: its shard in upper-case hex, long numbers as texts. */
export const blockV3 = (block: Block, global_id: number) => ({
  workchain: block.id.workchain,
  shard: shardV3(block.id.shard),
  seqno: block.id.seqno,
  root_hash: block.id.root_hash.toString('base64'),
  file_hash: block.id.file_hash.toString('base64'),
  global_id,
  version: 0,
  after_merge: block.after_merge,
  before_split: false,
  after_split: block.after_split,
  want_merge: false,
  want_split: false,
  key_block: false,
  gen_utime: String(block.utime),
  start_lt: String(block.start_lt),
  end_lt: String(block.end_lt),
  tx_count: block.tx_count,
  masterchain_block_ref: { workchain: -1, shard: '8000000000000000', seqno: block.mc_seqno },
  prev_blocks: block.prev.map(({ workchain, shard, seqno }) => ({
    workchain,
    shard: shardV3(shard),
    seqno,
  })),
})

/** The newest state of an account. */
export function accountStateV3(address: string, account: AccountView, withCells: boolean) {
  const { balance, status, last_lt, last_hash, code, data } = account
  const [codeHash, dataHash] = [code, data].map((cell) => cell?.hash().toString('base64'))
  return {
    address: address.toUpperCase(),
    account_state_hash: dataHash ?? last_hash.toString('base64'),
    balance: String(balance),
    extra_currencies: {},
    status: status === 'uninitialized' ? 'uninit' : status,
    last_transaction_hash: last_hash.toString('base64'),
    last_transaction_lt: String(last_lt),
    ...(code && data && { data_hash: dataHash, code_hash: codeHash }),
    ...(code &&
      data &&
      withCells && {
        data_boc: data.toBoc().toString('base64'),
        code_boc: code.toBoc().toString('base64'),
      }),
    contract_methods: null,
    interfaces: null,
  }
}

/** A jetton wallet. */
export const jettonWalletV3 = ({
  address,
  balance,
  owner,
  jetton,
  last_lt,
  code,
  data,
}: JettonWallet) => ({
  address: address.toUpperCase(),
  balance: String(balance),
  owner: owner.toUpperCase(),
  jetton: jetton.toUpperCase(),
  last_transaction_lt: String(last_lt),
  code_hash: code.hash().toString('base64'),
  data_hash: data.hash().toString('base64'),
})
