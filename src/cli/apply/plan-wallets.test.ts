import { expect, test } from 'vitest'
import { formatAddress } from '../../chains/polkadot/address.ts'
import type { PlanTools } from './plan-tools.ts'
import { planWallets } from './plan-wallets.ts'

const account = (byte: number) => new Uint8Array(32).fill(byte)

test('addresses that the service prints with the prefix of its network are compared as accounts', async () => {
  const kusama = 2
  const stored = [1, 2].map((byte) => formatAddress(account(byte), kusama))
  const refused: string[] = []
  const read = async (name: string) => {
    expect(name).toBe('ListWallets')
    const wallet = { wallet_id: 'w1', name: 'hot', addresses: stored, addresses_truncated: false }
    return { wallets: [wallet], pagination: { next_page_token: '' } }
  }
  const tools = {
    ...{ read: () => read, prune: true },
    refuse: (_: unknown, rest: string) => refused.push(rest),
  } as unknown as PlanTools
  const organization = { id: 'o1' }
  const planned = await planWallets(
    {
      wallets: [{ name: 'hot', addresses: [1, 3].map((byte) => formatAddress(account(byte), 0)) }],
    },
    { at: 'p', path: [], service: 'p', organization, domain: 'example.com' },
    tools,
  )
  expect(refused).toEqual([])
  expect(
    planned.steps.flatMap(({ mark, calls }) => calls.map((call) => [mark, call.request()])),
  ).toEqual([
    ['-', { wallet_id: 'w1', addresses: [stored[1]] }],
    ['+', { wallet_id: 'w1', addresses: [formatAddress(account(3), 0)] }],
  ])
})
