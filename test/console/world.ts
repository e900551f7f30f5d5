// A running service with something on every page, and the browser that looks at it. The files of this folder share it: starting
// costs more than most of the tests.

import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { privateKeyToAccount } from 'viem/accounts'
import { onTestFinished } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { freshFolder, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { attacks } from './attacks.ts'
import { startOrigin, type Watched, watch } from './browser.ts'

/** The account of the demo wallet, one of those that anvil gives to everyone. */
export const sender = privateKeyToAccount(
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
)
const attack = '<img src=x onerror="window.attacked=1">'
const limit = { timeoutMs: 60_000 }

/** The service, what is stored in it, and how a page of it is opened. */
export type World = Awaited<ReturnType<typeof startWorld>>

/** Starts the service and fills every page. */
export async function startWorld(browser: Browser) {
  const service = await startService(join(await freshFolder(), '.data'), {
    args: ['--chains', 'c', '--no-traffic'],
    // Behind a path prefix everything is one step harder than at the root.
    env: {
      PORTOLAN_SERVER__BASE_PATH: '/portolan',
      // Otherwise pages of this machine may call the API while local chains run.
      PORTOLAN_SERVER__CORS_ORIGINS: '["https://app.example"]',
    },
  })
  const { base_url } = service.connection
  const admin = service.connection.admin!
  const member = service.connection.member!
  const client = createClient({ base_url, ...admin })
  const receiver = await startFailingReceiver()

  // What the pages show. Texts of others try to become markup.
  const address = sender.address.toLowerCase()
  // The demo wallet is made after the start.
  await waitFor(
    'the demo wallet is there',
    async () => (await client.c.ListWallets({})).wallets.length > 0,
    limit,
  )
  const demo = (await client.c.GetWallet({ address })).wallet
  const { wallet_id } = await client.c.RegisterWallet({ name: attack, confirmation: 1 })
  const { webhook_id } = await client.c.RegisterWebhook({
    wallet_id,
    webhook_endpoint: `${receiver.url}/?${encodeURIComponent(attack)}`,
    confirmation: 1,
  })
  await client.c.RegisterWebhookHeader({ webhook_id, header_key: 'x-note', header_value: attack })
  const { webhook_history_id } = await client.c.SendTestWebhook({ webhook_id })
  const post = async (name: string, body: object) => {
    const answer = await fetch(`${base_url}/dev/v1/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(20_000),
    })
    return (await answer.json()) as Record<string, unknown>
  }
  const fund = async (to: string) =>
    `${(await post('faucet', { chain: 'c', address: to, amount: '1500000000000000000' })).transaction_hash}`
  const deposit = await fund(address)
  await waitFor(
    'the deposit is tracked and the receiver was called',
    async () => {
      const { transfers } = await client.c.ListTransfers({ transaction_hash: deposit })
      const { webhook_attempts } = await client.c.ListWebhookAttempts({ webhook_history_id })
      return transfers.length > 0 && webhook_attempts.length > 0
    },
    limit,
  )
  // The wallet waits for ten confirmations; then its balance and the history of it are shown.
  await post('mine', { chain: 'c', blocks: 12 })
  await waitFor(
    'the balance is confirmed',
    async () => {
      const asset = { wallet_id: demo.wallet_id, asset_type: 'ASSET_TYPE_C' } as const
      return (await client.c.ListBalanceHistory(asset)).points.length > 0
    },
    limit,
  )
  const { transaction } = await client.c.CreateTransaction({
    wallet_id: demo.wallet_id,
    from: address,
    to: `0x${'ab'.repeat(20)}`,
    value: '1000',
  })

  const open = async (scheme: 'light' | 'dark', width: number, height: number) => {
    const context = await browser.newContext({
      colorScheme: scheme,
      viewport: { width, height },
      reducedMotion: 'reduce',
    })
    // An open page follows the service for as long as it is there.
    onTestFinished(() => context.close())
    return watch(context)
  }
  const signIn = async (
    { page }: Watched,
    pair: { api_key: string; api_secret: string },
    isRemembered = false,
  ) => {
    await page.goto(base_url)
    if (isRemembered) await page.getByLabel('Stay signed in').check()
    await page.getByLabel('api_key').fill(pair.api_key)
    await page.getByLabel('api_secret').fill(pair.api_secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  }
  /** Without a reload, as a click does it. */
  const visit = async (page: Page, path: string) => {
    await page.evaluate((to) => {
      history.pushState(null, '', to)
      window.dispatchEvent(new PopStateEvent('popstate'))
    }, `${base_url}/${path}`)
    await page.waitForFunction(
      () => document.querySelector('main h1') && !document.querySelector('main .skeleton'),
    )
  }
  const clean = ({ errors, requests }: Watched) => ({
    errors,
    others: requests.filter((url) => !url.startsWith(base_url)),
  })

  return {
    ...{ browser, service, base_url, admin, member, client, receiver, limit, address, demo },
    ...{ wallet_id, webhook_id, webhook_history_id, deposit, transaction },
    ...{ post, fund, open, signIn, visit, clean },
  }
}

/** A receiver that answers 500 with markup until it is fixed. */
async function startFailingReceiver(): Promise<{ url: string; fix(): void }> {
  let isFixed = false
  const url = await startOrigin((request, response) => {
    request.resume()
    if (isFixed) response.writeHead(204).end()
    else
      response
        .writeHead(500, { 'content-type': 'text/html', 'x-reason': attack })
        .end(attacks().join('\n'))
  })
  return {
    url,
    fix: () => {
      isFixed = true
    },
  }
}
