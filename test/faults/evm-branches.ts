import type { Anvil } from '../../devnet/anvil/anvil.ts'

/** Blocks above a common one, as they can be made again. */
export type Branch = { hash: string; timestamp: string; baseFeePerGas: string; raw: string[] }[]

type Block = {
  hash: string
  timestamp: string
  baseFeePerGas: string
  transactions: string[]
}

/** Writes down the newest blocks of a chain. */
export const rememberBranch = async (anvil: Anvil, depth: number): Promise<Branch> => {
  const head = Number(await anvil.call<string>('eth_blockNumber'))
  const branch: Branch = []
  for (let number = head - depth + 1; number <= head; number++) {
    const { hash, timestamp, baseFeePerGas, transactions } = await anvil.call<Block>(
      'eth_getBlockByNumber',
      [`0x${number.toString(16)}`, false],
    )
    const raw = await Promise.all(
      transactions.map((one) => anvil.call<string>('eth_getRawTransactionByHash', [one])),
    )
    branch.push({ hash, timestamp, baseFeePerGas, raw })
  }
  return branch
}

/**
 * Replaces the newest blocks by a branch. Anvil has nothing random in a block, so that it gets
 * the hash that it had; it needs to mine in the order of arrival (`--order fifo`). Says whether it did.
 */
export const restoreBranch = async (
  anvil: Anvil,
  depth: number,
  branch: Branch,
): Promise<boolean> => {
  await anvil.call('anvil_rollback', [depth])
  let isSame = true
  for (const { hash, timestamp, baseFeePerGas, raw } of branch) {
    await anvil.call('anvil_dropAllTransactions')
    for (const one of raw) await anvil.call('eth_sendRawTransaction', [one])
    await anvil.call('anvil_setNextBlockBaseFeePerGas', [baseFeePerGas])
    await anvil.call('evm_setNextBlockTimestamp', [Number(timestamp)])
    await anvil.call('evm_mine')
    const made = await anvil.call<Block>('eth_getBlockByNumber', ['latest', false])
    isSame &&= made.hash === hash
  }
  return isSame
}
