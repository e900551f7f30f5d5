// Coin types of strangers: what their authors chose as names can be stored, and one that nodes cannot answer for concerns its
// own balances only.
import { expect, it } from 'vitest'
import { devCoin } from '../../devnet/sui/accounts.ts'
import type { BalanceQuery } from '../../src/chains/chain.ts'
import { suiFamily } from '../../src/chains/sui/family.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { connect, genesis, hashOf, never, record, start } from './sui-nodes.ts'

const holder = Buffer.alloc(32, 0xab)
const assetOf = (type: string) => {
  const parsed = suiFamily.parseToken!(type)
  if (!parsed.ok) throw new Error(parsed.detail)
  return { ...suiFamily.native, contract_address: parsed.bytes }
}

it('a coin type that a node cannot answer for concerns its own balances only', async () => {
  // A stream that stalls would count against the node.
  const node = await start({ blockTimeMs: 50 })
  await node.pay(node.key(1), `0x${holder.toString('hex')}`, 5n)
  node.ledger.seal()
  node.faults.brokenCoins = [devCoin]
  const { chain } = connect({ upstreams: [{ url: node.url }] })
  const seen = record(chain, genesis(node))
  const { number, digest } = node.ledger.history.newest()
  await waitFor('the head', () => seen.last() >= number)
  const coin: BalanceQuery = { address: holder, asset: suiFamily.native }
  const broken: BalanceQuery = { address: holder, asset: assetOf(devCoin) }
  const other: BalanceQuery = { address: Buffer.alloc(32, 7), asset: assetOf(devCoin) }
  const at = { number, hash: hashOf(digest) }
  const read = await chain.readBalances([coin, broken, other, coin], at, never)
  expect(read.map(({ balance }) => balance)).toEqual([5n, null, null, 5n])
  const token = {
    asset_type: suiFamily.native.asset_type,
    token_address: broken.asset.contract_address,
  }
  const refused = { ok: false, field: 'token_address' }
  expect(await chain.tokens!.verifyToken!(token, never)).toMatchObject(refused)
  expect(await chain.tokens!.resolveImport!({ ...token, address: holder }, never)).toMatchObject(
    refused,
  )
  expect(chain.status!().upstreams).toMatchObject([{ state: 'healthy', error_rate: 0 }])
  node.faults.brokenCoins = []
  const [healed] = await chain.readBalances([broken], at, never)
  expect(healed!.balance).toBe(0n)
})

it('a coin type that one node cannot answer for is read from another one', async () => {
  // Blocks come by themselves: a node without a stream is asked for the next one.
  const broken = await start({ blockTimeMs: 50 })
  const sound = await broken.openEndpoint()
  const owners = [1, 2, 3].map((fill) => Buffer.alloc(32, fill))
  await broken.pay(broken.key(1), `0x${owners[0]!.toString('hex')}`, 5n)
  broken.ledger.seal()
  broken.faults.brokenCoins = [devCoin]
  const { chain } = connect({ upstreams: [{ url: broken.url }, { url: sound.url, priority: 1 }] })
  const seen = record(chain, genesis(broken))
  const { number, digest } = broken.ledger.history.newest()
  await waitFor('the head', () => seen.last() >= number)
  const queries = owners.map((address): BalanceQuery => ({ address, asset: assetOf(devCoin) }))
  const coin: BalanceQuery = { address: owners[0]!, asset: suiFamily.native }
  const at = { number, hash: hashOf(digest) }
  const read = async () =>
    (await chain.readBalances([...queries, coin], at, never)).map(({ balance }) => balance)
  expect(await read()).toEqual([0n, 0n, 0n, 5n])
  sound.faults.brokenCoins = [devCoin]
  expect(await read()).toEqual([null, null, null, 5n])
  expect(chain.status!().upstreams).toMatchObject([{ state: 'healthy' }, { state: 'healthy' }])
})

const signs = [
  '\u0000',
  '\u202e',
  '\u2066',
  '\n',
  '\u007f',
  '\ud83d\ude00',
  'a',
  ' ',
  '\ufeff',
  "'",
]

it('names of coins can be stored and shown, whatever their authors chose', async () => {
  const random = createRandom(5)
  const node = await start()
  const { chain } = connect({ upstreams: [{ url: node.url }] })
  const { asset_type } = suiFamily.native
  const textOf = () => {
    const length = Math.floor(random() ** 4 * 2_000)
    return Array.from({ length }, () => signs[Math.floor(random() * signs.length)]).join('')
  }
  let named = 0
  for (let number = 16; number < 116; number++) {
    const type = `0x${number.toString(16)}::coin::COIN`
    const [name, symbol] = [textOf(), textOf()]
    const decimals = Math.floor(random() * 2 ** Math.floor(random() * 32))
    node.ledger.addCoin(type, { name, symbol, decimals, description: name })
    const token = { asset_type, token_address: assetOf(type).contract_address }
    const found = await chain.tokens!.verifyToken!(token, never)
    if (!found.ok) throw new Error(found.detail)
    const { info } = found
    for (const text of [info.name, info.symbol]) {
      if (text === null) continue
      named++
      expect(text).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
      expect(text.isWellFormed() && text.length > 0 && text.length <= 1_000).toBe(true)
    }
    expect(info.decimals).toBe(decimals < 256 ? decimals : null)
  }
  expect(named).toBeGreaterThan(100)
})
