import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe } from 'vitest'
import { startChromium } from '../helpers/chromium.ts'
import { testAttacks } from './attacked.ts'
import { testEveryPage } from './every-page.ts'
import { testKeys } from './keys.ts'
import { testTransactions } from './transactions.ts'
import { testWallets } from './wallets.ts'
import { startWorld } from './world.ts'

const browser = await startChromium()

describe.runIf(browser)('the console in a real browser', { timeout: 300_000 }, async () => {
  if (!browser) return
  // Nothing is done where the console is built already, and not older than its sources.
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/build-console.ts')])
  const world = await startWorld(browser)
  testEveryPage(world)
  testWallets(world)
  testKeys(world)
  testAttacks({
    ...world,
    transaction_hash: world.deposit,
    wallet_id: world.demo.wallet_id,
    open: () => world.open('light', 1440, 900),
    node_url: world.service.connection.chains.c!.node_url!,
    sign_in_url: world.service.connection.sign_in_url!,
  })
  testTransactions(world)
})
