import { describe, expect, it, onTestFinished } from 'vitest'
import { orderedRoot } from '../../../devnet/polkadot/trie.ts'
import type { Chain } from '../../../src/chains/chain.ts'
import { isExtrinsicsRoot } from '../../../src/chains/polkadot/trie.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { contentOf, followTo, never, refOf, startHarness } from './harness.ts'
import { testRuntimes } from './runtimes.ts'

const unit = 10n ** 12n

it('the root of a body is that of the header, in both layouts, and of no other body', () => {
  const body = (count: number) =>
    Array.from({ length: count }, (_, at) => Buffer.alloc(1 + ((at * 37) % 150), at + 1))
  for (const count of [0, 1, 2, 3, 17, 64, 65, 300])
    for (const layout of [0, 1]) {
      const extrinsics = body(count)
      const root = Buffer.from(orderedRoot(extrinsics, layout))
      expect(isExtrinsicsRoot(root, extrinsics)).toBe(true)
      if (count === 0) continue
      expect(isExtrinsicsRoot(root, extrinsics.slice(1))).toBe(false)
      const changed = extrinsics.with(count - 1, Buffer.alloc(7, 0xee))
      expect(isExtrinsicsRoot(root, changed)).toBe(false)
    }
})

describe.each(testRuntimes())('verification on $name', ({ spec }) => {
  const start = async () => {
    const node = await startHarness({ ...(spec && { spec }) })
    onTestFinished(node.stop)
    node.mine(2)
    const honest = await node.serve()
    const open = (): Chain => {
      const chain = node.openChain({
        upstreams: [{ url: node.node_url }, { url: honest.url, priority: 10 }],
        verification: 'full',
      })
      onTestFinished(chain.stop)
      return chain
    }
    return { node, open }
  }

  it('refuses a changed body, names it and asks another node', async () => {
    const { node, open } = await start()
    const chain = open()
    const first = refOf(node.chain.best())
    const sent = node.pay(1, 50, unit)
    const made = node.make({ extrinsics: [sent] })
    node.server.tamper((method, result) => {
      if (method !== 'chain_getBlock') return undefined
      const { block } = result as { block: { extrinsics: string[] } }
      return { block: { ...block, extrinsics: [...block.extrinsics, '0x0484'] } }
    })
    const everyone = [node.account(50)]
    const [block] = await followTo(chain, first, made.number)
    const hash = Buffer.from(node.hashOf(sent).slice(2), 'hex')
    expect(contentOf(block!, everyone).movements).toMatchObject([
      { value: unit, transaction_hash: hash },
    ])
    expect(chain.status!().verification!.refused.bodies).toBeGreaterThan(0)
    expect(chain.status!().verification).toMatchObject({
      mode: 'full',
      checked: { bodies: expect.any(Number) },
    })
    expect(chain.status!().verification!.last_refusal).toContain('is not that of its header')
  })

  it('refuses events and balances that the state root does not prove', async () => {
    const { node, open } = await start()
    const chain = open()
    const first = refOf(node.chain.best())
    const made = node.make({ extrinsics: [node.pay(1, 50, unit)] })
    // A proof whose values are changed has other hashes: nodes are missing.
    node.server.tamper((method, result) => {
      if (method !== 'state_getReadProof') return undefined
      const { at, proof } = result as { at: string; proof: string[] }
      const longest = proof.toSorted((one, other) => other.length - one.length)[0]!
      return { at, proof: proof.map((one) => (one === longest ? `${one.slice(0, -2)}aa` : one)) }
    })
    const [block] = await followTo(chain, first, made.number)
    expect(contentOf(block!, [node.account(50)]).movements).toMatchObject([{ value: unit }])
    await waitFor('counted', () => (chain.status!().verification!.refused.states ?? 0) > 0)
    expect(chain.status!().verification!.last_refusal).toContain('is not proven')
    const query = [50, 51].map((number) => ({ address: node.account(number), asset: chain.native }))
    const [held, none] = await chain.readBalances(query, refOf(made), never)
    expect([held!.balance, none!.balance]).toEqual([unit, 0n])
    expect(chain.status!().verification!.checked.states).toBeGreaterThan(1)
  })
})
