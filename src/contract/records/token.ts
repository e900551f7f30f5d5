import Type, { type Static } from 'typebox'
import { ContractType, optional, text } from '../fields.ts'
import { record } from '../variant.ts'

const collection = Type.Object({ contract_address: text, name: text, symbol: text })

/** What a contract says of itself, keyed by its standard as in spec 2.6; of its items it has nothing. */
const ContractMetadata = Type.Object({
  erc20: optional(
    Type.Object({
      contract_address: text,
      name: text,
      symbol: text,
      decimals: optional(Type.Integer()),
    }),
  ),
  erc721: optional(collection),
  erc1155: optional(collection),
})

/** The metadata of a token contract; null where the contract has none. */
export type ContractMetadata = Static<typeof ContractMetadata> | null

/** Spec 2.10. */
export const Contract = record('Contract', {
  contract_address: text,
  contract_type: ContractType,
  contract_metadata: Type.Union([ContractMetadata, Type.Null()]),
})
