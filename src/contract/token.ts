import Type from 'typebox'
import { ContractType, EvmAddress, text } from './fields.ts'
import { operation } from './operation.ts'
import { TokenMetadata } from './records-wallet.ts'
import { list, record } from './variant.ts'

/** Spec 2.10. */
export const Contract = record('Contract', {
  contract_address: text,
  contract_type: ContractType,
  contract_metadata: Type.Union([TokenMetadata, Type.Null()]),
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
