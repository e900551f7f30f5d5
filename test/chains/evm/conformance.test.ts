import { startAnvil } from '../../../devnet/anvil/anvil.ts'
import { createCanonical } from '../../../src/chains/evm/canonical/canonical.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { createPool } from '../../../src/chains/evm/pool/pool.ts'
import type { Pool } from '../../../src/chains/evm/pool/pool-types.ts'
import { describeChain } from '../../../src/chains/testing/conformance.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { waitFor } from '../../helpers/wait-for.ts'

describeChain('of EVM blocks, on anvil', async () => {
  const anvil = await startAnvil({ args: ['--no-mining'] })
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: [{ url: anvil.wsUrl }, { url: anvil.url, priority: 1 }],
    clock: systemClock,
    log: silentLog,
    limits: { probeIntervalMs: 100 },
  })
  const explored = () => waitFor('the node is explored', () => pool.can('debug_trace'))
  await explored()
  let isDown = false
  const gate: Pool = {
    ...pool,
    request: async (request) => (isDown ? { failure: 'NO_UPSTREAM' } : await pool.request(request)),
  }
  const canonical = createCanonical({
    pool: gate,
    prefix: 'eth',
    clock: systemClock,
    log: silentLog,
  })
  const chain = createEvmChain({ pool: gate, canonical, pollMs: 200 })
  const funded = await anvil.call<string[]>('eth_accounts')
  const account = (number: number): Buffer => {
    if (number < 10) return Buffer.from(funded[number]!.slice(2), 'hex')
    const made = Buffer.alloc(20, 0xa5)
    made.writeUInt32BE(number, 16)
    return made
  }
  const hex = (bytes: Buffer) => `0x${bytes.toString('hex')}`
  return {
    chain,
    account,
    pay: async ({ from, to, value }) => {
      const payment = { from: hex(from), to: hex(to), value: `0x${value.toString(16)}` }
      await anvil.call('eth_sendTransaction', [payment])
      await anvil.call('evm_mine')
    },
    mine: async (count) => void (await anvil.call('anvil_mine', [`0x${count.toString(16)}`])),
    reorganize: async (depth) => {
      const other = { from: funded[5], to: funded[6], value: '0x1' }
      await anvil.call('anvil_reorg', [depth, [[other, 0]]])
      await anvil.call('evm_mine')
    },
    setMode: async (mode) => {
      isDown = mode === 'down'
      if (mode === 'hanging') anvil.pause()
      else anvil.resume()
      if (mode === 'up') await explored()
    },
    stop: async () => {
      await chain.stop()
      canonical.stop()
      await pool.stop()
      await anvil.stop()
    },
  }
})
