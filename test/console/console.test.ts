import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { freshFolder, startService } from '../cli/portolan.ts'
import { startChromium } from '../helpers/chromium.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { testAttacks } from './attacked.ts'
import { attacks } from './attacks.ts'
import { audit, auditColours, axeSource, startOrigin, type Watched, watch } from './browser.ts'

const browser = await startChromium()
/** A folder for pictures of every page, for people to look at. */
const shots = process.env.CONSOLE_SHOTS
// The account of the demo wallet is one of those that anvil gives to everyone.
const sender = privateKeyToAccount(
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
)
const attack = '<img src=x onerror="window.attacked=1">'
const limit = { timeoutMs: 60_000 }

describe.runIf(browser)('the console in a real browser', { timeout: 240_000 }, async () => {
  if (!browser) return
  // Nothing is done where the console is built already, and not older than its sources.
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/build-console.ts')])
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

  const pages: Readonly<Record<string, string>> = {
    overview: '',
    wallets: 'wallets/c',
    wallet: `wallets/c/${demo.wallet_id}`,
    balances: `wallets/c/${demo.wallet_id}/balances`,
    addresses: `wallets/c/${demo.wallet_id}/addresses`,
    'attacking-wallet': `wallets/c/${wallet_id}`,
    transfer: `transfers/c/${deposit}`,
    webhooks: 'webhooks/c',
    webhook: `webhooks/c/${webhook_id}`,
    headers: `webhooks/c/${webhook_id}/headers`,
    receiver: `webhooks/c/${webhook_id}/receiver`,
    delivery: `webhooks/c/${webhook_id}/deliveries/${webhook_history_id}`,
    transactions: 'transactions/c',
    transaction: `transactions/c/${transaction.transaction_id}`,
    playground: 'playground/c/RegisterWebhook',
    gateway: 'gateway',
    methods: 'gateway/methods',
    clients: 'gateway/clients',
    nodes: 'gateway/nodes',
    local: 'local',
    organizations: 'organizations',
    organization: `organizations/${service.connection.organization_id}`,
    keys: 'keys',
    usage: 'usage',
    audit: 'audit',
    missing: 'no-such-page',
    documents: 'docs',
    guide: 'docs/guide/webhooks',
    reference: 'docs/api/c/RegisterWebhook',
  }

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

  const sizes = [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]
  const themes = ['light', 'dark'] as const
  /** Loads every page once, and looks at it in both themes and sizes: loading costs most. */
  const inspectAll = async () => {
    const violations: Record<string, string[]> = Object.fromEntries(
      themes.flatMap((theme) => sizes.map(({ width }) => [`${theme} ${width}`, []])),
    )
    const watched = await open('light', 1440, 900)
    const { page } = watched
    const inspect = async (name: string, hasAxe: boolean) => {
      for (const size of sizes) {
        await page.setViewportSize(size)
        for (const colorScheme of themes) {
          await page.emulateMedia({ colorScheme })
          const found: string[] = []
          if (shots !== undefined)
            await page.screenshot({
              path: join(shots, `${colorScheme}-${size.width}`, `${name}.png`),
            })
          const isWide = () => document.documentElement.scrollWidth > window.innerWidth
          if (await page.evaluate(isWide)) found.push(`${name}: wider than the screen`)
          // The structure is the same in both themes.
          const isFirst = colorScheme === themes[0]
          if (hasAxe)
            found.push(...(isFirst ? await audit(page, name) : await auditColours(page, name)))
          violations[`${colorScheme} ${size.width}`]?.push(...found)
        }
      }
    }
    await page.goto(base_url)
    await page.getByLabel('api_key').waitFor()
    await inspect('sign-in', false)
    await signIn(watched, admin)
    await page.evaluate(axeSource)
    for (const [name, path] of Object.entries(pages)) {
      await visit(page, path)
      await inspect(name, true)
    }
    return {
      violations,
      clean: clean(watched),
      attacked: await page.evaluate(() => 'attacked' in window),
    }
  }
  let inspected: ReturnType<typeof inspectAll> | undefined

  test.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
    ['dark', 390],
  ] as const)('every page in %s at %i px', async (scheme, width) => {
    inspected ??= inspectAll()
    const { violations, ...others } = await inspected
    expect(violations[`${scheme} ${width}`]).toEqual([])
    expect(others).toEqual({ clean: { errors: [], others: [] }, attacked: false })
  })

  test('a deposit appears while the page is open, and a failing receiver is fixed and retried', async () => {
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await signIn(watched, member)
    // A member has no page of organizations, and no button to create keys.
    expect(await page.getByRole('link', { name: 'Organizations' }).count()).toBe(0)
    await visit(page, `wallets/c/${demo.wallet_id}`)
    await page.locator('.live[data-state=open]').waitFor()
    const hash = await fund(address)
    await page.locator(`tr:has([title="${hash}"])`).first().waitFor({ timeout: 60_000 })

    await visit(page, `webhooks/c/${webhook_id}/deliveries/${webhook_history_id}`)
    await page.getByText('HTTP 500').first().waitFor()
    // The headers of both sides are there, and the value of a custom one is not.
    const headers = (await page.locator('.headers').allTextContents()).join()
    expect(headers).toMatch(/x-note•+.*webhook-signaturev1,.*content-typetext\/html.*x-reason<img/)
    expect(await page.locator('main img').count()).toBe(0)
    receiver.fix()
    await page.getByRole('button', { name: 'Deliver again' }).click()
    await page.getByText('HTTP 204').first().waitFor({ timeout: 60_000 })

    // The search goes to it, and the key `/` to the search.
    await page.locator('main').focus()
    await page.keyboard.press('/')
    await page.keyboard.type(hash)
    // Before the results are there.
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Transfer' }).waitFor()
    // A result that is chosen by keyboard is gone on its page: the next key continues there.
    await page.locator('main').focus()
    await page.keyboard.press('/')
    await page.keyboard.type(address)
    await page.locator('.search-results a').first().waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.activeElement?.tagName === 'MAIN')
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a remembered key survives a reload, and the gateway answers', async () => {
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await signIn(watched, admin, true)
    await page.goto(`${base_url}/gateway`)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('"result": "0x').waitFor()
    // The history stays while other pages are visited.
    await page.getByRole('link', { name: 'Methods', exact: true }).click()
    await page.getByRole('link', { name: 'Playground', exact: true }).click()
    await page.getByText('"result": "0x').waitFor()
    await page.getByLabel('Method').selectOption('eth_subscribe')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'Subscription' }).waitFor()
    const { websocket_clients } = await client.admin.ListWebSocketClients({})
    expect(websocket_clients.map(({ subscriptions }) => subscriptions)).toContainEqual([
      { name: 'newHeads', subscription_count: 1 },
    ])
    // A dialog of a panel stands in the middle of the screen, not in the panel.
    await visit(page, 'keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel(/^scopes\b/).waitFor()
    const box = await page.locator('dialog[open]').boundingBox()
    expect(Math.abs((box?.x ?? 0) + (box?.width ?? 0) / 2 - 720)).toBeLessThan(10)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Sign out' }).click()
    // The next session in this tab sees nothing of the last one.
    await page.getByLabel('api_key').fill(member.api_key)
    await page.getByLabel('api_secret').fill(member.api_secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await visit(page, 'gateway')
    await page.getByText('Nothing was sent yet.').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('api_key').waitFor()
    await page.reload()
    await page.getByLabel('api_key').waitFor()
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a key that is revoked or narrow sees what it may do, and the page says why it ended', async () => {
    const { credential } = await client.admin.CreateCredential({
      ...{ organization_id: service.connection.organization_id!, name: 'narrow' },
      ...{ role: 'ROLE_MEMBER', scopes: ['*:read'] },
    })
    const { page } = await open('light', 390, 844)
    await signIn({ page, errors: [], requests: [] }, credential, true)
    await visit(page, `wallets/c/${demo.wallet_id}/addresses`)
    expect(await page.getByRole('button', { name: /Add|Remove|Rename/ }).count()).toBe(0)
    for (const path of ['keys', 'organizations', 'gateway/nodes', 'playground/c/RegisterWallet']) {
      await visit(page, path)
      await page.getByText('Your key may not use this.').waitFor()
    }
    await client.admin.RevokeCredential({ credential_id: credential.credential_id })
    await page.getByLabel('api_key').waitFor()
    await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor()
    // The key is not kept for the next load.
    await page.reload()
    await page.getByLabel('api_key').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  testAttacks({
    ...{ browser, client, base_url, admin, address, webhook_id, webhook_history_id, limit },
    ...{ signIn, visit, clean, transaction_hash: deposit, wallet_id: demo.wallet_id },
    open: () => open('light', 1440, 900),
    node_url: service.connection.chains.c!.node_url!,
    sign_in_url: service.connection.sign_in_url!,
  })

  test('a transaction is created, signed by a wallet of the browser, sent and confirmed', async () => {
    const watched = await open('dark', 1440, 900)
    const { page } = watched
    await page.exposeFunction('signForTest', (fields: Record<string, `0x${string}`>) =>
      sender.signTransaction({
        type: 'legacy',
        chainId: 31_337,
        to: fields.to!,
        nonce: Number(fields.nonce),
        value: BigInt(fields.value!),
        gas: BigInt(fields.gas!),
        gasPrice: BigInt(fields.gasPrice!),
        data: fields.data!,
      }),
    )
    await page.addInitScript((account) => {
      const sign = (fields: unknown) =>
        (window as unknown as { signForTest(fields: unknown): unknown }).signForTest(fields)
      Object.assign(window, {
        ethereum: {
          request: async ({ method, params }: { method: string; params?: unknown[] }) =>
            method === 'eth_requestAccounts' ? [account] : sign(params?.[0]),
        },
      })
    }, sender.address)
    await client.c.CancelTransaction({ transaction_id: transaction.transaction_id })
    await signIn(watched, member)
    await visit(page, `transactions/c?wallet=${demo.wallet_id}`)
    await page.getByRole('button', { name: 'Send coin' }).click()
    await page.getByLabel(/^to\b/).fill(`0x${'cd'.repeat(20)}`)
    await page.getByLabel(/^value\b/).fill('x')
    await page.getByRole('button', { name: 'Create' }).click()
    // The complaint stands at its field.
    await page.locator('.field[data-bad] .field-error').first().waitFor()
    await page.getByLabel(/^value\b/).fill('12345')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'Sign with the wallet' }).click()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const state = page.locator('.machine-state[data-current=true] text')
    // Further transactions make blocks.
    await waitFor(
      'the transaction is confirmed',
      async () => {
        await fund(address)
        return /CONFIRMED/.test((await state.textContent()) ?? '')
      },
      limit,
    )
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a reorganization takes a transfer back while the page is open', async () => {
    const watched = await open('light', 390, 844)
    const { page } = watched
    await signIn(watched, admin)
    await visit(page, `wallets/c/${demo.wallet_id}`)
    await page.locator('.live[data-state=open]').waitFor()
    const hash = await fund(address)
    const row = page.locator(`tr:has([title="${hash}"])`).first()
    await row.waitFor()
    const { transfers } = await client.c.ListTransfers({ transaction_hash: hash })
    const { chains } = await client.admin.ListChains({})
    const head = Number(chains.find(({ chain }) => chain === 'c')?.block_number)
    await post('reorg', { depth: head - Number(transfers[0]?.block_number) + 2 })
    await row.getByText('Reorged').waitFor()
    // It stays in the list of what has happened, for administrators.
    await visit(page, 'local')
    await page.getByLabel('Blocks').fill('2')
    // On a busy machine the blocks may be replaced before they were tracked: that is no reorganization.
    await waitFor(
      'the reorganization is shown',
      async () => {
        await page.getByRole('button', { name: 'Reorganize' }).click()
        return (await page.locator('.timeline .badge', { hasText: 'reorganization' }).count()) > 0
      },
      { ...limit, everyMs: 2_000 },
    )
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })
})

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
