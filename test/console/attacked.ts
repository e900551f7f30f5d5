import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import type { Client } from '../../client/src/index.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { attacks } from './attacks.ts'
import { startOrigin, type Watched, watch } from './browser.ts'
import { namedToken } from './named-token.ts'

/** The running service and the browser that the attacks use. */
export type AttackedWorld = {
  browser: Browser
  client: Client
  base_url: string
  node_url: string
  sign_in_url: string
  admin: { api_key: string; api_secret: string }
  wallet_id: string
  address: string
  webhook_id: string
  webhook_history_id: string
  transaction_hash: string
  post(name: string, body: object): Promise<unknown>
  fund(to: string): Promise<string>
  open(): Promise<Watched>
  signIn(watched: Watched, pair: { api_key: string; api_secret: string }): Promise<void>
  visit(page: Page, path: string): Promise<void>
  clean(watched: Watched): object
  limit: { timeoutMs: number }
}

/** Texts of others on every page that shows them, and pages of other origins. */
export function testAttacks(world: AttackedWorld): void {
  const { client, base_url, admin, webhook_id, open, signIn, visit, clean, limit } = world
  const texts = attacks()

  const inert = (page: Page) =>
    page.evaluate(() => ({
      attacked: 'attacked' in window,
      made: document.querySelectorAll(
        'main :is(img, script, iframe, object, embed, video, style, link, math, marquee, body)',
      ).length,
    }))
  const harmless = { attacked: false, made: 0 }
  const shows = async (page: Page, wanted: readonly string[]) => {
    const text = await page.locator('main').textContent()
    expect(wanted.filter((one) => !text?.includes(one))).toEqual([])
    expect(await inert(page)).toEqual(harmless)
  }

  test('200 texts in names, headers, answers, tokens and messages stay text', async () => {
    expect(texts).toHaveLength(200)
    const names = texts.filter((text) => text.length <= 50)
    for (const name of names) await client.c.RegisterWallet({ name })
    // A webhook has at most 50 headers, a token name at most 1,000 bytes: several texts share one.
    const values = groups(texts, 5)
    for (const [index, header_value] of values.entries())
      await client.c.RegisterWebhookHeader({ webhook_id, header_key: `x-${index}`, header_value })
    const tokens = groups(texts, 10)
    const contracts = tokens.map((text, index) => ({
      contract_address: `0x${(0xa77ac0 + index).toString(16).padStart(40, '0')}`,
      code: namedToken(text, tokens.at(-1 - index)!),
    }))
    for (const { contract_address, code } of contracts)
      await rpc(world.node_url, 'anvil_setCode', [contract_address, code])
    // Code that is set belongs to the block after the last one. Balances are read at blocks that the tracker has stored.
    const transaction_hash = await world.fund(world.address)
    await waitFor(
      'the block with the contracts is stored',
      async () => (await client.c.ListTransfers({ transaction_hash })).transfers.length > 0,
      limit,
    )
    for (const { contract_address } of contracts)
      await client.c.RegisterContract({ contract_address, contract_type: 'CONTRACT_TYPE_ERC20' })
    const asked = { wallet_id: world.wallet_id, asset_type: 'ASSET_TYPE_ERC20' } as const
    await client.c.RefreshAssetBalances(asked)
    // The wallet waits for ten confirmations.
    await world.post('mine', { chain: 'c', blocks: 12 })
    await waitFor(
      'the balances of the tokens were read',
      async () => {
        const { assets } = await client.c.ListAssets({
          ...{ ...asked, page_size: 100, exclude_zero_balance: true },
        })
        return assets.length >= tokens.length
      },
      limit,
    )

    const watched = await open()
    const { page } = watched
    await signIn(watched, admin)
    await visit(page, 'wallets/c')
    const shown = new Set<string>()
    let last = ''
    // Only the rows in view are in the document: the page is scrolled through all of them.
    await waitFor(
      'every name was shown',
      async () => {
        const seen = await page.locator('main tbody td:first-child').allTextContents()
        for (const text of seen) shown.add(text)
        // At the end it begins again: rows may have come after the page was scrolled past their place.
        const isEnd =
          seen.join('\n') === last &&
          (await page.evaluate(() => scrollY + innerHeight >= document.body.scrollHeight - 2))
        last = seen.join('\n')
        await page.mouse.wheel(0, isEnd ? -1_000_000 : 500)
        return names.every((name) => shown.has(name))
      },
      { ...limit, everyMs: 20 },
    )
    expect(await inert(page)).toEqual(harmless)
    await visit(page, `webhooks/c/${webhook_id}/headers`)
    await shows(page, values)
    await visit(page, `wallets/c/${world.wallet_id}/balances`)
    await shows(page, tokens)
    // The receiver answered with all of them.
    await visit(page, `webhooks/c/${webhook_id}/deliveries/${world.webhook_history_id}`)
    await shows(page, texts)
    await page.getByRole('searchbox', { name: /^Search/ }).fill('<img')
    await page.locator('.search-results a').first().waitFor()
    expect(await page.locator('.search-results img').count()).toBe(0)

    // Chain C has no messages, and some texts are refused before they are stored: the answers are changed on
    // their way, so that the page gets each text in every field that has words.
    await page.route('**/v1/c/ListTransfers', async (route) => {
      const answer = await route.fetch()
      const { transfers, pagination } = (await answer.json()) as {
        transfers: Record<string, unknown>[]
        pagination: object
      }
      const changed = texts.map((text, index) => ({
        ...transfers[0],
        transfer_id: `${index}${text}`,
        ...{ message: text, from: text, transfer_state: text, direction: text },
        transfer_metadata: { erc20: { contract_address: text, name: text, symbol: text } },
      }))
      await route.fulfill({ response: answer, json: { transfers: changed, pagination } })
    })
    await visit(page, `transfers/c/${world.transaction_hash}`)
    await shows(page, texts)
    await visit(page, `wallets/c/${world.wallet_id}`)
    expect(await inert(page)).toEqual(harmless)
    await page.route('**/v1/c/ListWebhooks', async (route) => {
      const answer = await route.fetch()
      const { webhooks, pagination } = (await answer.json()) as {
        webhooks: Record<string, unknown>[]
        pagination: object
      }
      const changed = texts.map((text, index) => ({
        ...webhooks[0],
        ...{ webhook_id: `${index}`, webhook_endpoint: text, last_error: text },
        ...{ enabled: false, disable_reason: text },
      }))
      await route.fulfill({ response: answer, json: { webhooks: changed, pagination } })
    })
    await visit(page, 'webhooks/c')
    await page.locator('main tbody tr').first().waitFor()
    expect(await inert(page)).toEqual(harmless)
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a page of another origin can neither frame, call, sign in nor listen', async () => {
    // With a signature of the page it could do all of it: what it lacks is the key.
    const context = await newContext(world)
    const signedIn = await watch(context)
    await signIn(signedIn, admin)
    const before = await client.c.ListWallets({ page_size: 1 })
    const { token } = await client.admin.CreateStreamToken({})
    const origin = await startOrigin((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>other</title>')
    })
    const { page } = await watch(context)
    await page.goto(origin)

    // Clickjacking: the browser shows an error in place of the page.
    await page.evaluate(
      (src) =>
        new Promise((resolve) => {
          const frame = document.createElement('iframe')
          frame.addEventListener('load', resolve)
          frame.src = src
          document.body.append(frame)
        }),
      base_url,
    )
    const framed = page.frames().find((frame) => frame !== page.mainFrame())
    expect(framed?.url()).toMatch(/^chrome-error:/)

    // Forged requests: none of them is answered with success, and none can be read.
    const code = new URL(world.sign_in_url).hash.replace('#sign-in=', '')
    const outcomes = await page.evaluate(
      async ({ base, to, code: secret }) => {
        const attempts: [string, string, RequestInit][] = []
        for (const [path, body] of [
          ['/v1/c/RegisterWallet', { name: 'forged' }],
          ['/dev/v1/sign-in', { code: secret }],
          ['/dev/v1/faucet', { chain: 'c', address: to }],
          ['/dev/v1/reorg', { depth: 3 }],
        ] as const) {
          const text = JSON.stringify(body)
          const post = { method: 'POST', body: text, credentials: 'include' } as const
          const json = { 'content-type': 'application/json' }
          attempts.push([path, 'plain', { ...post, headers: { 'content-type': 'text/plain' } }])
          attempts.push([path, 'opaque', { ...post, mode: 'no-cors' }])
          attempts.push([path, 'json', { ...post, headers: json }])
        }
        const results: string[] = []
        for (const [path, kind, init] of attempts) {
          const outcome = await fetch(base + path, init).then(
            (answer) => (answer.type === 'opaque' ? 'opaque' : `read ${answer.status}`),
            () => 'refused',
          )
          if (outcome !== (kind === 'opaque' ? 'opaque' : 'refused'))
            results.push(`${path} ${kind}: ${outcome}`)
        }
        // A form is sent without a question to the server.
        const form = document.createElement('form')
        form.method = 'post'
        form.enctype = 'text/plain'
        form.action = `${base}/dev/v1/sign-in`
        const frame = document.createElement('iframe')
        frame.name = form.target = 'forged'
        const input = document.createElement('input')
        input.name = `{"code":"${secret}","x":"`
        input.value = '"}'
        form.append(input)
        document.body.append(frame, form)
        const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
        form.submit()
        await loaded
        return results
      },
      { base: base_url, to: stranger, code },
    )
    expect(outcomes).toEqual([])

    // The stream, with the credentials of the browser and with a token that was stolen.
    const listened = await page.evaluate(
      async (urls) =>
        Promise.all(
          urls.map(
            (url) =>
              new Promise<string>((resolve) => {
                const source = new EventSource(url, { withCredentials: true })
                source.addEventListener('ready', () => resolve('open'))
                source.addEventListener('error', () => {
                  source.close()
                  resolve('refused')
                })
              }),
          ),
        ),
      [`${base_url}/v1/events`, `${base_url}/v1/events?token=${encodeURIComponent(token)}`],
    )
    expect(listened).toEqual(['refused', 'refused'])

    // A window that it opens is cut off from it.
    const [popup] = await Promise.all([
      context.waitForEvent('page'),
      page.evaluate((url) => {
        ;(window as { victim?: Window | null }).victim = window.open(url)
      }, `${base_url}/wallets/c`),
    ])
    await popup.getByLabel('api_key').waitFor()
    expect(await popup.evaluate(() => window.opener)).toBeNull()
    await waitFor('the handle is dead', () =>
      page.evaluate(() => (window as { victim?: Window | null }).victim?.closed === true),
    )

    const after = await client.c.ListWallets({ page_size: 1 })
    expect(after.wallets).toEqual(before.wallets)
    expect(await rpc(world.node_url, 'eth_getBalance', [stranger, 'latest'])).toBe('0x0')
  })

  test('a one-time link signs in once, and the tab that it opens holds nothing to steal', async () => {
    // After the attacks above: a forged request has not used the code.
    const watched = await open()
    const { page } = watched
    await page.goto(world.sign_in_url)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(page.url()).toBe(`${base_url}/`)
    const found = await stealAll(page)
    expect(found.keys).toEqual([{ extractable: false, exported: 'refused' }])
    expect(found.texts).toContain(admin.api_key)
    expect(found.texts).not.toContain(admin.api_secret)
    expect(found.texts).not.toContain('sign-in')
    // What a reload restores signs, and still cannot be read.
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('api_key').waitFor()
    expect((await stealAll(page)).texts).not.toContain(admin.api_key)
    expect(clean(watched)).toEqual({ errors: [], others: [] })

    const second = await open()
    await second.page.goto(world.sign_in_url)
    await second.page.getByText('This link was used or is too old.').waitFor()
  })
}

/** Several texts in one, so many at a time. */
const groups = (texts: readonly string[], size: number): string[] =>
  Array.from({ length: texts.length / size }, (_, at) =>
    texts.slice(at * size, at * size + size).join(' '),
  )

const newContext = async ({ browser }: AttackedWorld): Promise<BrowserContext> => {
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  onTestFinished(() => context.close())
  return context
}

/** An account that has no coin. */
const stranger = `0x${'66'.repeat(20)}`

async function rpc(url: string, method: string, params: unknown[]): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(20_000),
  })
  const { result, error } = (await answer.json()) as { result?: unknown; error?: unknown }
  expect(error).toBeUndefined()
  return result
}

/** What a script of the page finds in its storages: all texts, and whether keys can be exported. */
const stealAll = (page: Page) =>
  page.evaluate(async () => {
    const done = (request: IDBRequest) =>
      new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
      })
    const keys: { extractable: boolean; exported: string }[] = []
    const texts = [JSON.stringify({ ...localStorage, ...sessionStorage }), location.href]
    for (const { name } of await indexedDB.databases()) {
      const database = (await done(indexedDB.open(name ?? ''))) as IDBDatabase
      for (const store of database.objectStoreNames) {
        const rows = (await done(
          database.transaction(store).objectStore(store).getAll(),
        )) as object[]
        texts.push(JSON.stringify(rows))
        for (const key of rows.flatMap((row) => Object.values(row)))
          if (key instanceof CryptoKey)
            keys.push({
              extractable: key.extractable,
              exported: await crypto.subtle.exportKey('raw', key).then(
                () => 'exported',
                () => 'refused',
              ),
            })
      }
      database.close()
    }
    return { keys, texts: texts.join(' ') }
  })
