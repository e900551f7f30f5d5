import { expect, it, onTestFinished } from 'vitest'
import { keyBytes, storageKey, toHex } from '../../../devnet/polkadot/bytes.ts'
import { contentOf, followTo, refOf, startHarness } from './harness.ts'

const unit = 10n ** 12n
const eventsKey = toHex(keyBytes(storageKey('System', 'Events')))

it('a block whose events no node has whole is stored with what can be decoded, and following continues', async () => {
  const node = await startHarness()
  onTestFinished(node.stop)
  node.mine(2)
  const first = refOf(node.chain.best())
  const damaged = node.make({ extrinsics: [node.pay(1, 50, unit), node.pay(2, 50, 2n * unit)] })
  const after = node.make({ extrinsics: [node.pay(3, 50, 3n * unit)] })
  // The last event of the block loses its end.
  node.server.tamper((method, result) => {
    if (method !== 'state_queryStorageAt') return undefined
    const [{ block, changes }] = result as [{ block: string; changes: [string, string | null][] }]
    if (block !== damaged.hash) return undefined
    return [
      {
        block,
        changes: changes.map(([key, value]) => [
          key,
          key === eventsKey ? value!.slice(0, -20) : value,
        ]),
      },
    ]
  })
  const chain = node.openChain()
  onTestFinished(chain.stop)
  const [broken, whole] = await followTo(chain, first, after.number)
  expect(broken!.lacks).toMatch(/^the events of block 3: /)
  expect(whole!.lacks).toBeUndefined()
  const values = [broken!, whole!].map((block) =>
    contentOf(block, [node.account(50)]).movements.map(({ value }) => value),
  )
  expect(values).toEqual([[unit], [3n * unit]])
  // Another attempt, when a node has them whole, has all.
  node.server.tamper(undefined)
  const again = await chain.block(damaged.number, { isTraced: false }, AbortSignal.timeout(10_000))
  expect(again.lacks).toBeUndefined()
  expect(contentOf(again, [node.account(50)]).movements).toHaveLength(2)
})
