import { createPublicClient, type Hex, http, numberToHex } from 'viem'
import { foundry } from 'viem/chains'
import { chainConfig } from 'viem/op-stack'

/** The records of spec 2.12 as they follow from what viem reads of the same node. */
export type Expected = ReturnType<typeof createExpected>

const lower = <value extends string | null | undefined>(value: value): value =>
  (typeof value === 'string' ? value.toLowerCase() : value) as value
const orNull = (value: string | null | undefined): string | null => lower(value ?? null)

/** Makes the independent derivation of every record. Numbers are bigints here. */
export function createExpected(url: string) {
  const client = createPublicClient({
    chain: { ...foundry, ...chainConfig },
    transport: http(url),
    cacheTime: 0,
  })

  const transaction = async (hash: string) => {
    const found = await client.getTransaction({ hash: hash as Hex })
    const isDeposit = found.type === 'deposit'
    return {
      transaction_hash: found.hash,
      block_number: found.blockNumber,
      block_hash: found.blockHash,
      from: lower(found.from),
      to: orNull(found.to),
      gas: found.gas,
      gas_price: isDeposit ? 0n : (found.gasPrice ?? 0n),
      input: found.input,
      nonce: BigInt(found.nonce),
      transaction_index: BigInt(found.transactionIndex ?? -1),
      value: numberToHex(found.value),
      r: numberToHex(BigInt(found.r ?? 0)),
      s: numberToHex(BigInt(found.s ?? 0)),
      v: numberToHex(found.v ?? 0n),
    }
  }

  return {
    client,
    transaction,
    pending: async (hash: string, record_time: string) => {
      const { block_number, block_hash, transaction_index, ...rest } = await transaction(hash)
      const { maxFeePerGas } = await client.getTransaction({ hash: hash as Hex })
      return { ...rest, gas_price: maxFeePerGas ?? rest.gas_price, record_time }
    },
    block: async (blockNumber: bigint) => {
      const found = await client.getBlock({ blockNumber })
      return {
        block_hash: found.hash,
        block_number: found.number,
        difficulty: found.difficulty,
        extra_data: found.extraData,
        gas_limit: found.gasLimit,
        gas_used: found.gasUsed,
        logs_bloom: found.logsBloom,
        miner: lower(found.miner),
        mix_hash: found.mixHash,
        nonce: found.nonce,
        parent_hash: found.parentHash,
        receipts_root: found.receiptsRoot,
        sha3_uncles: found.sha3Uncles,
        size: found.size,
        state_root: found.stateRoot,
        timestamp: found.timestamp,
        transactions_root: found.transactionsRoot,
        uncles: found.uncles,
      }
    },
    receipt: async (hash: string) => {
      const found = await client.getTransactionReceipt({ hash: hash as Hex })
      return {
        transaction_hash: found.transactionHash,
        block_number: found.blockNumber,
        block_hash: found.blockHash,
        contract_address: orNull(found.contractAddress),
        cumulative_gas_used: found.cumulativeGasUsed,
        from: lower(found.from),
        to: orNull(found.to),
        gas_used: found.gasUsed,
        logs_bloom: found.logsBloom,
        status: found.status === 'success' ? 1n : 0n,
        transaction_index: BigInt(found.transactionIndex),
        effective_gas_price: found.effectiveGasPrice,
      }
    },
    /** From the logs of the block and not from the receipt. */
    logs: async (hash: string) => {
      const { blockHash } = await client.getTransaction({ hash: hash as Hex })
      const logs = await client.getLogs({ blockHash: blockHash! })
      return logs
        .filter(({ transactionHash }) => transactionHash === hash)
        .map((log) => ({
          transaction_hash: log.transactionHash,
          address: lower(log.address),
          data: log.data,
          topics: log.topics,
          block_number: log.blockNumber,
          block_hash: log.blockHash,
          transaction_index: BigInt(log.transactionIndex),
          log_index: BigInt(log.logIndex),
          removed: log.removed ?? false,
        }))
    },
  }
}

type WithSource = { source?: string }

/** An answer with its numbers as bigints, exactly as they were written. */
export const parseExact = (text: string): unknown =>
  JSON.parse(text, ((_: string, value: unknown, { source }: WithSource) =>
    typeof value === 'number' ? BigInt(source ?? 'missing') : value) as (
    key: string,
    value: unknown,
  ) => unknown)
