import { afterAll, describe, expect, it } from 'vitest'
import { hash256 } from '../../../devnet/polkadot/bytes.ts'
import type { ChainBlock, Movement } from '../../../src/chains/chain.ts'
import {
  contentOf,
  eventsOf,
  feesOf,
  followTo,
  netOf,
  never,
  refOf,
  startHarness,
} from './harness.ts'
import { testRuntimes } from './runtimes.ts'

const unit = 10n ** 12n
const worlds = await Promise.all(
  testRuntimes().map(async ({ spec, ...runtime }) => {
    const node = await startHarness({ ...(spec && { spec }) })
    node.mine(2)
    const chain = node.openChain()
    afterAll(async () => {
      await chain.stop()
      await node.stop()
    })
    return { ...runtime, node, chain }
  }),
)

describe.each(worlds)('transfers of $name', ({ node, chain, isModern, specVersion }) => {
  const numberOf = new Map(
    Array.from({ length: 100 }, (_, number) => [node.account(number).toString('hex'), number]),
  )
  const everyone = Array.from({ length: 100 }, (_, number) => node.account(number))

  /** Makes a block, follows to it, and returns its records for all accounts. */
  const play = async (...extrinsics: Buffer[]) => {
    const parent = node.chain.best()
    const made = node.make({ extrinsics })
    expect(made.extrinsics).toHaveLength(extrinsics.length + 2)
    const [block] = (await followTo(chain, refOf(parent), made.number)) as [ChainBlock]
    const { movements, touched } = contentOf(block, everyone)
    const read = async (at: typeof made) =>
      await chain.readBalances(
        everyone.map((address) => ({ address, asset: chain.native })),
        refOf(at),
        never,
      )
    const [before, after] = [await read(parent), await read(made)]
    const changed = everyone.flatMap((account, number) => {
      const delta = after[number]!.balance! - before[number]!.balance!
      return delta === 0n ? [] : [{ account, number, delta }]
    })
    // Every account whose balance changed is read again; none is missing.
    const touchedKeys = new Set(touched.map(({ address }) => address.toString('hex')))
    for (const { account } of changed) expect(touchedKeys).toContain(account.toString('hex'))
    // Records and fees add up to the change of each balance.
    for (const [number, account] of everyone.entries()) {
      const { delta } = changed.find((one) => one.number === number) ?? { delta: 0n }
      expect(netOf(account, movements) - feesOf(account, movements)).toBe(delta)
    }
    return { made, block, movements, changed, after, shown: movements.map(show) }
  }

  const show = ({ from, to, value }: Movement) =>
    [numberOf.get(from.toString('hex')), numberOf.get(to.toString('hex')), value] as const

  it('shows transfer, transfer_keep_alive and transfer_all, with hash and exact fee', async () => {
    const extrinsics = [
      node.pay(1, 50, 5n * unit),
      node.signed(2, 'Balances', 'transfer_keep_alive', { dest: node.to(51), value: 6n * unit }),
    ]
    const { made, block, movements, changed, shown } = await play(...extrinsics)
    const { version } = node.chain.codeOf(made.state)
    expect(version.specVersion).toBe(specVersion)
    const feeEvents = eventsOf(node, made).filter(({ name }) => name === 'TransactionFeePaid')
    expect(feeEvents).toHaveLength(isModern ? 2 : 0)
    expect(shown).toEqual([
      [1, 50, 5n * unit],
      [2, 51, 6n * unit],
    ])
    expect(block.time % 12_000).toBe(0)
    for (const [at, payer] of [1, 2].entries()) {
      const { transaction_hash, transaction_fee } = movements[at]!
      expect(`0x${transaction_hash.toString('hex')}`).toBe(node.hashOf(extrinsics[at]!))
      const { delta } = changed.find(({ number }) => number === payer)!
      expect(netOf(node.account(payer), movements) - transaction_fee).toBe(delta)
    }
    // Everything that 50 has, which ends the account.
    const all = await play(
      node.signed(50, 'Balances', 'transfer_all', { dest: node.to(52), keep_alive: false }),
    )
    const [[from, to, value]] = all.shown as [[number, number, bigint]]
    expect([from, to]).toEqual([50, 52])
    expect(value + all.movements[0]!.transaction_fee).toBe(5n * unit)
    expect(all.after[50]!.balance).toBe(0n)
  })

  it('shows what a batch did: all of it, or up to where it was interrupted', async () => {
    const whole = { calls: [node.inner(53, unit), node.inner(54, 2n * unit)] }
    const broken = {
      calls: [node.inner(53, 3n * unit), node.inner(54, 10n ** 30n), node.inner(55, unit)],
    }
    const { shown, movements, changed } = await play(
      node.signed(3, 'Utility', 'batch_all', whole),
      node.signed(4, 'Utility', 'batch', broken),
      node.signed(5, 'Utility', 'batch_all', broken),
    )
    expect(shown).toEqual([
      [3, 53, unit],
      [3, 54, 2n * unit],
      [4, 53, 3n * unit],
      // It did nothing and cost its fee.
      [5, undefined, 0n],
    ])
    expect(movements[0]!.transaction_hash).toEqual(movements[1]!.transaction_hash)
    expect(movements[0]!.ordinal).toBeLessThan(movements[1]!.ordinal)
    // The interrupted one got back what it did not use; its fee is what it really cost.
    const { delta } = changed.find(({ number }) => number === 4)!
    expect(-3n * unit - movements[2]!.transaction_fee).toBe(delta)
  })

  it('shows the fee of failed transactions', async () => {
    const { shown, movements, changed } = await play(node.pay(6, 56, 10n ** 30n))
    expect(shown).toEqual([[6, undefined, 0n]])
    const { transaction_fee, detail } = movements[0]!
    expect(detail).toEqual({ pays_fee: true })
    expect(changed).toMatchObject([{ number: 6, delta: -transaction_fee }])
  })

  it('shows a transfer through a proxy as one of the real account, paid by the proxy', async () => {
    const who = (number: number) => (isModern ? node.to(number) : node.to(number).value)
    const proxy = { delegate: who(8), proxy_type: { type: 'Any' }, delay: 0 }
    const reserved = await play(node.signed(7, 'Proxy', 'add_proxy', proxy))
    // What is reserved is still had: only the fee is gone.
    expect(reserved.changed).toHaveLength(1)
    expect(reserved.changed[0]!.delta).toBeGreaterThan(-unit / 100n)
    const call = node.inner(57, 4n * unit)
    const value = { real: who(7), force_proxy_type: undefined, call }
    const { shown, movements, changed } = await play(node.signed(8, 'Proxy', 'proxy', value))
    expect(shown).toHaveLength(2)
    expect(shown).toEqual(
      expect.arrayContaining([
        [7, 57, 4n * unit],
        [8, undefined, 0n],
      ]),
    )
    expect(movements.filter(({ detail }) => detail?.pays_fee)).toMatchObject([{ value: 0n }])
    const deltaOf = (number: number) => changed.find((one) => one.number === number)!.delta
    expect(deltaOf(7)).toBe(-4n * unit)
    expect(deltaOf(8)).toBe(-movements[0]!.transaction_fee)
  })

  it('follows accounts that begin, lose their dust and end', async () => {
    await play(node.pay(1, 60, unit))
    // All but the fee and a little, which is less than an account may hold.
    const { movements } = await play(node.pay(2, 61, unit - 1n))
    const most = unit - movements[0]!.transaction_fee - 1_000n
    const value = { dest: node.to(61), value: most }
    const { shown, after, changed } = await play(
      node.signed(60, 'Balances', node.transferCall, value),
    )
    // What was left is less than an account may hold. It is lost with the account.
    expect(shown.toSorted((one, other) => Number(other[2] - one[2]))).toEqual([
      [60, 61, most],
      [60, undefined, expect.any(BigInt)],
    ])
    expect(after[60]!.balance).toBe(0n)
    expect(changed.map(({ number }) => number)).toEqual([60, 61])
    // It begins again, with its nonces from zero.
    const again = await play(node.pay(1, 60, unit))
    expect(again.after[60]!.balance).toBe(unit)
  })

  it('shows a transfer of a multisig account, paid by its signer', async () => {
    const [first, second] = [node.account(1), node.account(2)].toSorted(Buffer.compare)
    const members = Buffer.concat([Buffer.of(2 << 2), first!, second!])
    const threshold = Buffer.of(1, 0)
    const seed = Buffer.concat([Buffer.from('modlpy/utilisuba'), members, threshold])
    const shared = Buffer.from(hash256(seed))
    await node.fund(node.address(shared), 9n * unit)
    const parent = node.chain.best()
    const value = { other_signatories: [node.to(2).value], call: node.inner(58, 3n * unit) }
    const signed = node.signed(1, 'Multisig', 'as_multi_threshold_1', value)
    const made = node.make({ extrinsics: [signed] })
    const [block] = (await followTo(chain, refOf(parent), made.number)) as [ChainBlock]
    const { movements } = contentOf(block, [shared])
    expect(movements).toMatchObject([{ from: shared, to: node.account(58), value: 3n * unit }])
    expect(`0x${movements[0]!.transaction_hash.toString('hex')}`).toBe(node.hashOf(signed))
    const query = [{ address: shared, asset: chain.native }]
    const [left] = await chain.readBalances(query, refOf(made), never)
    expect(left!.balance).toBe(6n * unit)
  })

  // The newer runtime pays its collators otherwise.
  it.runIf(!isModern)(
    'shows payouts of the chain itself under the hash of their block',
    async () => {
      // Collators get half of the collected fees in the next block, at its very beginning.
      const parent = node.chain.best()
      node.make({ extrinsics: [node.pay(1, 62, unit)] })
      const made = node.mine(1)
      const blocks = await followTo(chain, refOf(parent), made.number)
      const accounts = blocks.flatMap((block) => [...block.accounts({ has: () => false, size: 0 })])
      const { movements } = contentOf(blocks.at(-1)!, accounts)
      expect(movements.length).toBeGreaterThan(0)
      for (const movement of movements)
        expect(movement).toMatchObject({
          transaction_hash: blocks.at(-1)!.hash,
          transaction_fee: 0n,
        })
    },
  )

  it('moves a hundred transfers in one block without losing or doubling one', async () => {
    const extrinsics = Array.from({ length: 100 }, (_, at) =>
      node.pay(9, 70 + (at % 10), unit + BigInt(at), at),
    )
    const { shown, movements } = await play(...extrinsics)
    expect(shown).toEqual(extrinsics.map((_, at) => [9, 70 + (at % 10), unit + BigInt(at)]))
    expect(new Set(movements.map(({ ordinal }) => ordinal)).size).toBe(100)
    const hashes = movements.map(({ transaction_hash }) => `0x${transaction_hash.toString('hex')}`)
    expect(hashes).toEqual(extrinsics.map(node.hashOf))
  })
})
