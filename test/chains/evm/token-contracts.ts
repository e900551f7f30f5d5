import { readFile } from 'node:fs/promises'
import { encodeFunctionData, parseAbi } from 'viem'
import type { Anvil } from '../../../devnet/anvil/anvil.ts'

const abi = parseAbi([
  'function mint(address to, uint256 value)',
  'function mint(address to, uint256 id, uint256 value)',
  'function transfer(address to, uint256 value)',
  'function transfer(address to, uint256 id, uint256 value)',
  'function transferFrom(address from, address to, uint256 id)',
  'function transferMany(address to, uint256[] ids, uint256[] values)',
  'function spray(address first, uint256 count, uint256 value)',
  'function burn(uint256 id)',
  'function pass(address to)',
  'function passInVain(address to)',
  'function delegate(address to)',
  'function makeAndEnd(address to)',
  'function fail()',
  'function say(bytes32[] topics, bytes data)',
])

/** The test contracts by name. */
export type ContractName = 'Coin' | 'OldCoin' | 'Item' | 'Multi' | 'Relay' | 'Babble' | 'Reader'

const file = new URL('../../../devnet/contracts/tokens.json', import.meta.url)

/** The compiled contracts. */
export const contracts = JSON.parse(await readFile(file, 'utf8')).contracts as Record<
  ContractName,
  { bytecode: string; runtime: string }
>

/** The data of a call. */
export const encode = (functionName: string, ...args: unknown[]): string =>
  encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0])

/** Lets an account send transactions on an anvil that mines on command. */
export const createSender = (anvil: Anvil) => {
  const send = async (transaction: {
    from: string
    to?: string
    data?: string
    value?: bigint
    gas?: string
  }): Promise<string> => {
    const { value = 0n, gas = '0x2dc6c0', ...rest } = transaction
    return await anvil.call<string>('eth_sendTransaction', [
      // With a limit of its own nothing is estimated: what will fail is sent as well.
      { ...rest, value: `0x${value.toString(16)}`, gas },
    ])
  }
  return {
    send,
    /** Puts a contract on the chain, in a block of its own. */
    deploy: async (name: ContractName, from: string, value = 0n): Promise<string> => {
      const hash = await send({ from, data: contracts[name].bytecode, value })
      await anvil.call('evm_mine')
      const receipt = await anvil.call<{ contractAddress: string }>('eth_getTransactionReceipt', [
        hash,
      ])
      return receipt.contractAddress
    },
  }
}
