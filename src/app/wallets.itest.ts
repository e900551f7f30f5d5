import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { families } from '../chains/registry.ts'
import { createScriptedChain } from '../chains/testing/scripted-chain.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { createReachable } from '../lib/net/reachable.ts'
import { findCursor } from '../storage/tracking/blocks.ts'
import { loadConfig } from './config/load.ts'
import { serverRoles } from './config/server-roles.ts'
import { rolesOf } from './roles.ts'
import { openWallets } from './wallets.ts'

const { db } = await freshDatabase()

test('a network that was not tracked is registered on only after its first tracked block', async () => {
  const chain = createScriptedChain({ family: families.c(), endowment: 1n })
  chain.setMode('down')
  let shift = 0
  const clock = {
    ...systemClock,
    now: () => Date.now() + shift,
    sleep: async (ms: number, signal?: AbortSignal) => {
      // Only the wait for the first block polls this often.
      if (ms === 20) shift += 1_000
      await systemClock.sleep(ms, signal)
    },
  }
  const place = { chain: 'base', network: 'sepolia', service: 'c' as const, isDefault: false }
  const wallets = await openWallets(
    loadConfig({ env: {}, cwd: '/' }),
    [{ ...place, open: async () => chain }],
    {
      db,
      clock,
      log: silentLog,
      newHolder: systemIds.uuid,
      roles: rolesOf(serverRoles),
      endpoints: { allowHttp: true, reachable: createReachable(['127.0.0.0/8']) },
    },
  )
  onTestFinished(wallets.stop)
  const { chains } = wallets
  expect(chains.find('base', 'sepolia')).toBeUndefined()
  await expect(chains.open('base', 'sepolia')).rejects.toMatchObject({
    reason: 'UPSTREAM_UNAVAILABLE',
    message: 'Tracking of base/sepolia has not begun yet. Nothing was registered.',
  })
  expect(chains.find('base', 'sepolia')).toBeUndefined()
  chain.setMode('up')
  await expect
    .poll(() =>
      chains.open('base', 'sepolia').then(
        (open) => open?.network_id,
        () => undefined,
      ),
    )
    .toBeDefined()
  const open = chains.find('base', 'sepolia')!
  expect(await findCursor(db, open.network_id)).toBeDefined()
})
