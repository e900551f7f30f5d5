// What a transaction cost its sender, by the rules of each kind of chain. Records and fees must add up to the change of the
// balance; `test/faults/evm-compare.ts` checks that in random worlds.

import { quantityOf, type RawReceipt, type ReadTransaction, typeOf } from '../codec/raw.ts'
import { isStateSync, priorityTypes } from './coin-logs.ts'
import { redeemType, ticketType } from './retryables.ts'

/** The type of a deposit on OP-style chains, and of a message on Scroll: paid for on the other chain. */
export const depositType = 0x7e
const blobType = 0x03
// A deposit on Arbitrum (ArbitrumDepositTx in OffchainLabs/nitro, arbos/tx_processor.go).
const arbitrumDepositType = 0x64

/** Whether a transaction came from the other chain. */
export const isDeposit = (transaction: ReadTransaction): boolean =>
  typeOf(transaction) === depositType

/** What is minted for the sender of a transaction from the other chain, before its value is sent. */
export function mintOf(transaction: ReadTransaction): bigint {
  const type = typeOf(transaction)
  if (type === depositType) return quantityOf(transaction.mint)
  if (type === ticketType) return quantityOf(transaction.depositValue)
  return type === arbitrumDepositType ? quantityOf(transaction.value) : 0n
}

/**
 * What the sender of a transaction paid for it in the native coin, a rollup's and a blob's fees
 * included. On Arbitrum, Linea, Taiko and ZKsync `gasUsed` holds all of it; Scroll and OP-style chains
 * name the fee for the other chain in `l1Fee`.
 */
export function feeOf(transaction: ReadTransaction, receipt: RawReceipt): bigint {
  const type = typeOf(transaction)
  // The gas of a redeem was paid with its ticket. It is minted for the sender before, and what is left is
  // taken away (see `retryables.ts`).
  if (type === depositType || type === redeemType || isStateSync(transaction)) return 0n
  // It comes out of what is minted for the request.
  if (priorityTypes.has(type)) return 0n
  // Celo (CIP-64): price and fee are in the token, and its transfer is a log of its own.
  if (transaction.feeCurrency) return 0n
  // Morph: the whole fee is in the token with this number, and zero is the coin (morph-l2/go-ethereum, core/types/morph_tx.go).
  if (quantityOf(transaction.feeTokenID) > 0n) return 0n
  const gasUsed = quantityOf(receipt.gasUsed)
  const price = quantityOf(receipt.effectiveGasPrice ?? transaction.gasPrice)
  let fee = gasUsed * price
  // Since Jovian `blobGasUsed` of other types is the data footprint, which costs nothing by itself
  // (ethereum-optimism/specs, protocol/jovian/exec-engine.md).
  if (type === blobType) fee += quantityOf(receipt.blobGasUsed) * quantityOf(receipt.blobGasPrice)
  if (receipt.l1Fee && !isL1FeeInGas(receipt)) fee += quantityOf(receipt.l1Fee)
  return fee + operatorFeeOf(receipt, gasUsed)
}

/**
 * Mantle before Arsia takes the fee for the other chain as gas (mantlenetworkio/op-geth,
 * core/state_transition.go: `l1Gas`), so it is in `gasUsed` already. Arsia has the fields of Jovian.
 */
const isL1FeeInGas = (receipt: RawReceipt): boolean =>
  receipt.tokenRatio !== undefined &&
  receipt.daFootprintGasScalar === undefined &&
  receipt.operatorFeeScalar === undefined &&
  receipt.operatorFeeConstant === undefined

/**
 * The receipt has the scalars, seldom the sum. Isthmus divides by 10^6, Jovian multiplies by 100
 * (ethereum-optimism/specs, protocol/isthmus/exec-engine.md and protocol/jovian/exec-engine.md;
 * OPERATOR_FEE_SCALAR_DECIMAL and OPERATOR_FEE_JOVIAN_MULTIPLIER in op-revm). op-geth and op-reth add
 * `daFootprintGasScalar` to every receipt but those of deposits since Jovian, and to none before.
 */
function operatorFeeOf(receipt: RawReceipt, gasUsed: bigint): bigint {
  if (receipt.operatorFee !== undefined) return quantityOf(receipt.operatorFee)
  if (!receipt.operatorFeeScalar && !receipt.operatorFeeConstant) return 0n
  const product = gasUsed * quantityOf(receipt.operatorFeeScalar)
  const isJovian =
    receipt.daFootprintGasScalar !== undefined && receipt.daFootprintGasScalar !== null
  const scaled = isJovian ? product * 100n : product / 1_000_000n
  return scaled + quantityOf(receipt.operatorFeeConstant)
}
