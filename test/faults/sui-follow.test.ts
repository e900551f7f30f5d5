import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { connect, expectGapless, genesis, hashOf, never, record, start } from './sui-nodes.ts'

it('continues while nodes die, restart, close their streams and stop answering', async () => {
  const node = await start({ blockTimeMs: 10 })
  const second = await node.openEndpoint()
  const { chain } = connect({ upstreams: [{ url: node.url }, { url: second.url }] })
  const seen = record(chain, genesis(node))
  const head = () => node.ledger.history.newest().number
  const advance = async (what: string, by = 20) => {
    const goal = head() + by
    await waitFor(what, () => seen.last() >= goal)
  }
  await advance('follows')
  node.closeStreams()
  second.closeStreams()
  await advance('after a closed stream')
  node.faults.mode = 'down'
  await advance('after a dead node')
  second.faults.mode = 'down'
  await delay(300)
  second.faults.mode = 'up'
  await advance('after both were dead')
  node.faults.mode = 'up'
  second.faults.stalled = true
  await advance('after a silent stream')
  node.faults.mode = 'hanging'
  await advance('after a node that hangs, by looking')
  second.faults.stalled = false
  node.faults.mode = 'up'
  node.faults.lag = 100
  await advance('beside a node that lags')
  node.faults.withoutLists = true
  second.faults.withoutLists = true
  node.faults.lag = 0
  await seen.stop()
  const again = record(chain, genesis(node))
  await waitFor('all again, one by one', () => again.last() >= seen.last())
  expectGapless(seen.numbers, 1)
  expectGapless(again.numbers, 1)
})

it('takes pruned history from an archive, and reports what is lost without one', async () => {
  const node = await start()
  const archive = await node.openEndpoint()
  archive.faults.archive = true
  for (let i = 0; i < 200; i++) node.ledger.seal()
  node.faults.lowest = 150
  const upstreams = [{ url: node.url }, { url: archive.url, archive: true }]
  const whole = record(connect({ upstreams }).chain, genesis(node))
  await waitFor('all of it', () => whole.last() === 200)
  expectGapless(whole.numbers, 1)

  // An archive that is unreachable is waited for.
  archive.faults.mode = 'down'
  const waiting = record(connect({ upstreams }).chain, genesis(node))
  await delay(900)
  expect(waiting.events).toEqual([])
  archive.faults.mode = 'up'
  await waitFor('all of it', () => waiting.last() === 200)
  expectGapless(waiting.numbers, 1)

  const partial = record(connect({ upstreams: [{ url: node.url }] }).chain, genesis(node))
  await waitFor('the rest', () => partial.last() === 200)
  expectGapless(partial.numbers, 150)
  expect(partial.events[0]).toMatchObject({ kind: 'gap', from: 1, to: { number: 149 } })
})

it('leaves out a node with another history, and stops when it is the only one', async () => {
  const [ours, theirs] = [await start(), await start()]
  // The same first checkpoint, and then not the same any more.
  for (const [node, amount] of [
    [ours, 1n],
    [theirs, 2n],
  ] as const) {
    for (let i = 0; i < 10; i++) node.ledger.seal()
    await node.pay(node.key(1), node.key(2).toSuiAddress(), amount)
    for (let i = 0; i < 20; i++) node.ledger.seal()
  }
  const both = connect({ upstreams: [{ url: theirs.url }, { url: ours.url }] })
  const at = (await connect({ upstreams: [{ url: ours.url }] }).chain.header(20, never))!
  const seen = record(both.chain, at)
  await waitFor('the head', () => seen.last() === 30)
  expectGapless(seen.numbers, 21)
  expect(both.alarms).toEqual(['node has a different history'])
  expect(both.chain.status?.()).toMatchObject({
    upstreams: [{ state: 'degraded', reason: 'has another history' }, { state: 'healthy' }],
  })

  const alone = record(connect({ upstreams: [{ url: theirs.url }] }).chain, at)
  await alone.running
  expect(alone.events).toEqual([{ kind: 'fork' }])
})

it('continues beside a node with unreadable checkpoints', async () => {
  const node = await start({ blockTimeMs: 10 })
  const second = await node.openEndpoint()
  const { chain } = connect({ upstreams: [{ url: node.url }, { url: second.url, priority: 1 }] })
  const seen = record(chain, genesis(node))
  const advance = async (what: string) => {
    const goal = node.ledger.history.newest().number + 20
    await waitFor(what, () => seen.last() >= goal)
  }
  await advance('follows')
  node.faults.garbled = true
  await advance('although the better one returns nonsense')
  node.faults.garbled = false
  await advance('when it has recovered')
  expectGapless(seen.numbers, 1)
})

it('never uses a node of another chain', async () => {
  const [ours, theirs] = [await start({ blockTimeMs: 20 }), await start({ seed: 2 })]
  const { chain, alarms } = connect({
    upstreams: [{ url: theirs.url }, { url: ours.url }],
    chainId: hashOf(ours.ledger.chainId).subarray(0, 4).toString('hex'),
  })
  expect(await chain.identity(never)).toBe(`sui:${ours.ledger.chainId}`)
  const seen = record(chain, genesis(ours))
  await waitFor('some', () => seen.last() > 5)
  expectGapless(seen.numbers, 1)
  expect(alarms).toEqual(['node is on another chain and is not used'])
})
