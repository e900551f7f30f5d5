import { expect, it } from 'vitest'
import { runAccounts } from './polkadot-accounts.ts'

it('an account that cannot be decoded concerns its own balance only', async () => {
  const { readings, unreadable, intact } = await runAccounts({ rounds: 50, seed: 2 })
  expect(readings).toBe(600)
  expect(unreadable).toBeGreaterThan(50)
  expect(intact).toBeGreaterThan(300)
}, 60_000)
