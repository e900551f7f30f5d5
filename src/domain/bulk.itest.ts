import { expect, test } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { createWalletBench } from '../../test/helpers/wallets.ts'

const { db } = await freshDatabase()

test('operations on many rows wait for the turn of their organization, page by page', async () => {
  const bench = await createWalletBench(db, 'c')
  const pages: string[] = []
  Object.assign(bench.installation, {
    bulkTurns: {
      note: () => {},
      run: (organization_id: string, page: () => Promise<unknown>) => {
        pages.push(organization_id)
        return page()
      },
    },
  })
  const { call, organization_id } = await bench.createCaller()
  const pagesOf = async (operation: string, request: object) => {
    pages.splice(0)
    const answer = await call(operation, request)
    expect(pages.every((one) => one === organization_id)).toBe(true)
    return { pages: pages.length, ...answer }
  }
  const addresses = Array.from({ length: 1_000 }, (_, number) => bench.address(number))
  const { wallet_id } = await call('RegisterWallet', { name: 'w' })
  const webhook_endpoint = 'https://example.com/'
  const { webhook_id } = await call('RegisterWebhook', {
    ...{ wallet_id, webhook_endpoint },
    confirmation: 1,
  })
  const webhook = { webhook_id }
  const counts = {
    BatchRegisterAddresses: { wallet_id, addresses },
    UpdateConfirmation: { wallet_id, confirmation: 3 },
    UpdateWebhook: { webhook_id, confirmation: 3 },
    DisableWebhook: webhook,
    EnableWebhook: webhook,
    RemoveWebhook: webhook,
    BatchRemoveAddresses: { wallet_id, remove_all: true },
    RemoveWallet: { wallet_id },
  }
  const found: Record<string, number> = {}
  for (const [operation, request] of Object.entries(counts))
    found[operation] = (await pagesOf(operation, request)).pages
  expect(found).toEqual({
    ...{ BatchRegisterAddresses: 1, UpdateConfirmation: 1, UpdateWebhook: 1, DisableWebhook: 1 },
    // The last page of a removal finds that nothing is left.
    ...{ EnableWebhook: 1, RemoveWebhook: 1, BatchRemoveAddresses: 2, RemoveWallet: 1 },
  })
})
