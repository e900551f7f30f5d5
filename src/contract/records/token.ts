import Type from 'typebox'
import { ContractType, EvmAddress, optional, text } from '../fields.ts'
import { operation } from '../operation.ts'
import { list, record } from '../variant.ts'

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

/** Spec 2.10. */
export const Contract = record('Contract', {
  contract_address: text,
  contract_type: ContractType,
  contract_metadata: Type.Union([ContractMetadata, Type.Null()]),
})

/** Token contracts of variant C (spec 4.4). */
export const token = {
  ListContracts: operation({
    summary: 'List the registered token contracts.',
    services: 'C',
    request: {},
    response: { contracts: list(Contract) },
  }),
  RegisterContract: operation({
    creates: true,
    summary: 'Track the transfers and balances of a token contract.',
    services: 'C',
    request: { contract_address: EvmAddress, contract_type: ContractType },
    response: {},
  }),
  RemoveContract: operation({
    summary: 'Stop tracking a token contract.',
    services: 'C',
    request: { contract_address: EvmAddress },
    response: {},
  }),
}
