import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import tokens from '../contracts/tokens.json' with { type: 'json' }
import type { DevContracts } from '../keeper-messages.ts'
import type { EvmDevChain } from './dev-chain.ts'

/** Puts an ERC-20 and an ERC-721 onto a chain; those of an earlier start are used again. */
export async function deployTokens(chain: EvmDevChain, folder: string): Promise<DevContracts> {
  const file = join(folder, 'contracts.json')
  const known = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as DevContracts,
    () => undefined,
  )
  if (known && (await hasCode(chain, known.erc20)) && (await hasCode(chain, known.erc721)))
    return known
  const erc20 = await deploy(chain, tokens.contracts.Coin.bytecode)
  const erc721 = await deploy(chain, tokens.contracts.Item.bytecode)
  await bury(chain)
  await writeFile(file, JSON.stringify({ erc20, erc721 }))
  return { erc20, erc721 }
}

// One more than the deepest reorganization that can be asked for.
const depth = 65

/** Puts blocks on top, so that no reorganization takes the contracts away. */
async function bury(chain: EvmDevChain): Promise<void> {
  await chain.call('anvil_mine', [`0x${depth.toString(16)}`, '0x1'])
  await chain.setClock()
}

const hasCode = async (chain: EvmDevChain, address: string): Promise<boolean> =>
  (await chain.call('eth_getCode', [address, 'latest'])) !== '0x'

async function deploy(chain: EvmDevChain, data: string): Promise<string> {
  const hash = await chain.call('eth_sendTransaction', [{ from: chain.traffic_address, data }])
  for (let attempt = 0; attempt < 100; attempt++) {
    const receipt = await chain.call<{ contractAddress: string } | null>(
      'eth_getTransactionReceipt',
      [hash],
    )
    if (receipt) return receipt.contractAddress
    await delay(50)
  }
  throw new Error('The token contracts were not mined.')
}
