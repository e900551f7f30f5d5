// Follows the development chain on the rate limit of a plan, and measures calls per masterchain block, refusals and
// how late it is. `--seconds 900 --rate 10 --shards 1 --block-ms 400`.

import { setTimeout as sleep } from 'node:timers/promises'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import { createTonChain } from '../../src/chains/ton/chain.ts'
import { readNumbers } from './program.ts'

const options = readNumbers({ seconds: 60, rate: 10, shards: 1, blockMs: 400 })
const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000 })
for (let depth = 1; depth <= Math.log2(options.shards); depth++) {
  dev.chain.setDepth(depth)
  await dev.mine(1)
}
await dev.mine(40)
const { node_url, requests } = await dev.addEndpoint({
  ...(options.rate > 0 && { requestsPerSecond: options.rate }),
})
const chain = createTonChain({
  upstreams: [
    { url: node_url, v3: false, ...(options.rate > 0 && { requests_per_second: options.rate }) },
  ],
})
const stop = AbortSignal.timeout(options.seconds * 1_000)
const begin = await chain.head(stop).catch(() => chain.head(stop))
const before = requests().admitted
const making = (async () => {
  for (let next = performance.now(); !stop.aborted; next += options.blockMs) {
    await dev.mine(1)
    await sleep(Math.max(0, next + options.blockMs - performance.now()))
  }
})()
let [at, aborts] = [begin.number, 0]
const late: number[] = []
while (!stop.aborted)
  try {
    for await (const event of chain.follow({ ...begin, number: at }, stop)) {
      if (event.kind !== 'blocks') throw new Error(event.kind)
      at = event.blocks.at(-1)!.number
      late.push(dev.chain.head().id.seqno - at)
    }
  } catch {
    if (!stop.aborted) aborts++
  }
await making
const { admitted, refused } = requests()
const blocks = at - begin.number
late.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    ...options,
    made: dev.chain.head().id.seqno - begin.number,
    blocks,
    calls_per_block: Number(((admitted - before) / blocks).toFixed(2)),
    refused,
    aborts,
    late_blocks: { p50: late[late.length >> 1], most: late.at(-1) },
  }),
)
await chain.stop()
await dev.stop()
