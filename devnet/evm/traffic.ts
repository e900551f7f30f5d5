import { encodeFunctionData, parseAbi } from 'viem'
import type { DevContracts } from '../keeper-messages.ts'
import type { EvmDevChain } from './dev-chain.ts'

const abi = parseAbi(['function mint(address to, uint256 value)'])
const tenth = 10n ** 17n

/** One transfer per call: native coin in and out, an ERC-20, and every tenth time an NFT. */
export function createEvmTraffic(
  chain: EvmDevChain,
  target: string,
  contracts?: DevContracts,
): () => Promise<unknown> {
  const from = chain.traffic_address
  const some = () => BigInt(1 + Math.floor(Math.random() * 20))
  const send = (transaction: object) => chain.call('eth_sendTransaction', [transaction])
  const native = (sender: string, to: string) =>
    send({ from: sender, to, value: hex(some() * tenth) })
  const mint = (contract: string, value: bigint) =>
    send({
      from,
      to: contract,
      data: encodeFunctionData({ abi, args: [target as `0x${string}`, value] }),
    })
  let turn = 0
  return () => {
    turn++
    if (contracts && turn % 10 === 0) return mint(contracts.erc721, BigInt(Date.now()))
    if (contracts && turn % 3 === 0) return mint(contracts.erc20, some() * 100_000n)
    // The target is one of the node's own accounts, so that money goes out as well.
    return turn % 5 === 0 ? native(target, from) : native(from, target)
  }
}

const hex = (value: bigint) => `0x${value.toString(16)}`
