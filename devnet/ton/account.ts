import {
  type Address,
  beginCell,
  Cell,
  loadShardAccount,
  type ShardAccount,
  type StateInit,
  storeShardAccount,
} from '@ton/core'

const write = (account: ShardAccount): string =>
  beginCell().store(storeShardAccount(account)).endCell().toBoc().toString('base64')

/** The state of an unused account. */
export const emptyState = (): string =>
  write({ account: null, lastTransactionHash: 0n, lastTransactionLt: 0n })

/** A contract as it is at the beginning of the chain. */
export const genesisState = (
  address: Address,
  { init, balance, utime }: { init: StateInit; balance: bigint; utime: number },
): string =>
  write({
    account: {
      addr: address,
      storageStats: {
        used: { cells: 0n, bits: 0n },
        storageExtra: null,
        lastPaid: utime,
        duePayment: null,
      },
      storage: {
        lastTransLt: 0n,
        balance: { coins: balance },
        state: { type: 'active', state: init },
      },
    },
    lastTransactionHash: 0n,
    lastTransactionLt: 0n,
  })

/** What is known of an account. */
export type AccountView = {
  balance: bigint
  status: 'uninitialized' | 'active' | 'frozen'
  code: Cell | null
  data: Cell | null
  last_lt: bigint
  last_hash: Buffer
}

/** Reads a state. */
export function viewAccount(boc: string): AccountView {
  const { account, lastTransactionHash, lastTransactionLt } = loadShardAccount(
    Cell.fromBase64(boc).beginParse(),
  )
  const state = account?.storage.state
  const active = state?.type === 'active' ? state.state : undefined
  return {
    balance: account?.storage.balance.coins ?? 0n,
    status: active ? 'active' : state?.type === 'frozen' ? 'frozen' : 'uninitialized',
    code: active?.code ?? null,
    data: active?.data ?? null,
    last_lt: lastTransactionLt,
    last_hash: Buffer.from(lastTransactionHash.toString(16).padStart(64, '0'), 'hex'),
  }
}
