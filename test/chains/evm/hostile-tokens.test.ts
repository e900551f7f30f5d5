import { afterAll, expect, it } from 'vitest'
import { startAnvil } from '../../../devnet/anvil/anvil.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { evmFamily } from '../../../src/chains/evm/family.ts'
import { type HostileKind, hostileCodes, placeHostile } from './hostile-contracts.ts'
import { poolOf } from './test-pool.ts'
import { contracts, createSender, encode } from './token-contracts.ts'

const anvil = await startAnvil({ args: ['--no-mining'] })
const pool = poolOf(anvil.url)
afterAll(async () => {
  await pool.stop()
  await anvil.stop()
})
const never = new AbortController().signal
const multicall = '0xca11bde05977b3631167028862be2a173976ca11'
const { send, deploy } = createSender(anvil)
const [rich] = (await anvil.call<string[]>('eth_accounts')) as [string]
const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex')
const holder = (number: number) => `0x${(0xabc000 + number).toString(16).padStart(40, '0')}`
const coins = [await deploy('Coin', rich), await deploy('Coin', rich)]
for (const [index, coin] of coins.entries())
  for (let number = 0; number < 20; number++)
    await send({
      from: rich,
      to: coin,
      data: encode('mint', holder(number), BigInt(number + index)),
    })
await anvil.call('evm_mine')

const token = (contract: string, number: number) => ({
  address: bytes(holder(number)),
  asset: {
    asset_type: 'ASSET_TYPE_ERC20' as const,
    contract_address: bytes(contract),
    token_id: 0n,
  },
})
const honest = Array.from({ length: 20 }, (_, number) =>
  coins.map((coin, index) => ({ query: token(coin, number), balance: BigInt(number + index) })),
).flat()
const native = { query: { address: bytes(holder(0)), asset: evmFamily.native }, balance: 0n }

/** A chain that counts what its nodes are asked. */
const openCounted = () => {
  const calls: string[] = []
  const request: typeof pool.request = (asked) => {
    calls.push(asked.method)
    return pool.request(asked)
  }
  return { calls, chain: createEvmChain({ multicall, pool: { ...pool, request } }) }
}

const kinds = Object.keys(hostileCodes) as HostileKind[]

for (const withMulticall of [false, true])
  for (const kind of [...kinds, 'all'] as const)
    it(`a token that fails (${kind}) leaves others alone, ${withMulticall ? 'in' : 'without'} Multicall3`, async () => {
      const code = withMulticall ? contracts.Reader.runtime : '0x'
      await anvil.call('anvil_setCode', [multicall, code])
      const some = kind === 'all' ? kinds : [kind]
      const failing = []
      for (const [index, one] of some.entries()) {
        const address = `0x${(0xbad00 + index).toString(16).padStart(40, '0')}`
        await placeHostile(anvil, one, address)
        failing.push(address)
      }
      await anvil.call('evm_mine')
      const hostile = failing.flatMap((address) =>
        [1, 2, 3].map((number) => ({ query: token(address, number), balance: null })),
      )
      // One of them first, one last, the others between the honest ones.
      const all = [
        ...hostile.slice(0, 1),
        ...honest.slice(0, 25),
        native,
        ...hostile.slice(1),
        ...honest.slice(25),
      ]
      const { calls, chain } = openCounted()
      for (let round = 0; round < 2; round++) {
        calls.length = 0
        const readings = await chain.readBalances(
          all.map(({ query }) => query),
          await chain.head(never),
          never,
        )
        expect(readings.map(({ balance }) => balance)).toEqual(all.map(({ balance }) => balance))
      }
      // Once it is known who fails, the honest ones go together as before.
      const calling = calls.filter((method) => method === 'eth_call').length
      if (withMulticall) expect(calling).toBeLessThan(5 + 6 * hostile.length)
    })
