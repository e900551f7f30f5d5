import { ContractType, EvmAddress } from '../fields.ts'
import { operation } from '../operation.ts'
import { Contract } from '../records/token.ts'
import { list } from '../variant.ts'

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
