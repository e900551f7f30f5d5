import type { Anvil } from '../../devnet/anvil/anvil.ts'

/** A movement that a transaction makes when it succeeds. */
export type Effect = { asset: string; from: string; to: string; value: bigint }

/** Who tracks what. */
export type Tracking = {
  addresses: Set<string>
  contracts: Set<string>
  /** Those of the contracts whose items are assets of their own. */
  collections: Set<string>
  confirmation: number
}

type RawTransaction = { hash: string; from: string; to: string | null; value: string }
type RawBlock = { hash: string; number: string; transactions: RawTransaction[] }

/** The name of an asset: its type, and contract and item where it has them. */
export const nativeAsset = 'ASSET_TYPE_C'

/** Stands for the contract that a transaction creates. */
export const created = 'created'

/** What every list must be, computed from the blocks of the chain and nothing else. */
export const createReference = (anvil: Anvil, plans: ReadonlyMap<string, readonly Effect[]>) => {
  const kept = new Map<
    string,
    { transaction: RawTransaction; failed: boolean; contract: string | null }[]
  >()

  const blockAt = async (number: number): Promise<RawBlock> =>
    await anvil.call('eth_getBlockByNumber', [`0x${number.toString(16)}`, true])

  /** The transactions of a block with their outcome; a block that was looked at stays so. */
  const contentOf = async (block: RawBlock) => {
    const known = kept.get(block.hash)
    if (known) return known
    const content = await Promise.all(
      block.transactions.map(async (transaction) => {
        const receipt = await anvil.call<{ status: string; contractAddress: string | null }>(
          'eth_getTransactionReceipt',
          [transaction.hash],
        )
        const { status, contractAddress: contract } = receipt
        return { transaction, failed: status === '0x0', contract }
      }),
    )
    kept.set(block.hash, content)
    return content
  }

  const effectsOf = (
    { hash, from, to, value }: RawTransaction,
    contract: string | null,
  ): readonly Effect[] => {
    const planned = plans.get(hash)
    if (!planned) return [{ asset: nativeAsset, from, to: to ?? '', value: BigInt(value) }]
    const name = (end: string) => (end === created ? contract! : end)
    return planned.map((effect) => ({ ...effect, from: name(effect.from), to: name(effect.to) }))
  }

  return {
    head: async () => Number(await anvil.call<string>('eth_blockNumber')),
    /** The transfers of a wallet since a block, and the pairs whose balance they have changed. */
    expected: async (since: number, { addresses, contracts, confirmation }: Tracking) => {
      const head = Number(await anvil.call<string>('eth_blockNumber'))
      const transfers: string[] = []
      const touched = new Set<string>()
      const numbers = Array.from({ length: head - since + 1 }, (_, index) => since + index)
      const contents = await Promise.all(
        numbers.map(async (number) => await contentOf(await blockAt(number))),
      )
      for (const number of numbers) {
        const pending = head - number + 1 < confirmation
        for (const { transaction, failed, contract: made } of contents[number - since]!) {
          const { hash, from, value } = transaction
          const to = transaction.to ?? made
          const state = pending ? 'TRANSFER_STATE_PENDING' : 'TRANSFER_STATE_SUCCESS'
          // The payer of a fee has a record, also where no coin is sent.
          if (!failed && addresses.has(from) && BigInt(value) === 0n)
            transfers.push([hash, nativeAsset, from, to, 0, state, number].join())
          if (!pending && addresses.has(from)) touched.add(`${from}/${nativeAsset}`)
          if (failed) {
            if (addresses.has(from))
              transfers.push(
                [
                  hash,
                  nativeAsset,
                  from,
                  to,
                  BigInt(value),
                  'TRANSFER_STATE_FAILED',
                  number,
                ].join(),
              )
            continue
          }
          for (const { asset, ...moved } of effectsOf(transaction, made)) {
            const [, contract] = asset.split('/')
            if (contract && !contracts.has(contract)) continue
            if (moved.value === 0n) continue
            const ends = [moved.from, moved.to].filter((end) => addresses.has(end))
            if (ends.length === 0) continue
            transfers.push([hash, asset, moved.from, moved.to, moved.value, state, number].join())
            if (!pending) for (const end of ends) touched.add(`${end}/${asset}`)
          }
        }
      }
      return { transfers: transfers.sort(), touched, confirmed: head - confirmation + 1 }
    },
  }
}
