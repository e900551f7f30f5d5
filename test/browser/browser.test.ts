import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import type { Overrides } from '../../src/app/config/schema.ts'
import { freshFolder } from '../cli/portolan.ts'
import { startTestApp } from '../helpers/app.ts'
import { openPage, startChromium } from '../helpers/chromium.ts'
import { waitFor } from '../helpers/wait-for.ts'

const browser = await startChromium()
const root = join(import.meta.dirname, '../..')

describe.runIf(browser)('in a real browser', { timeout: 400_000 }, async () => {
  if (!browser) return
  const anvil = await startAnvil()
  afterAll(anvil.stop)
  const networks = { mainnet: { upstreams: [{ url: anvil.url }] } }
  const service = await startTestApp({
    config: {
      chains: { c: { networks }, q: { networks } } as unknown as Overrides['chains'],
      server: { cors_origins: ['http://localhost:*'] },
    },
  })
  const tenant = await service.createTenant()
  await waitFor('the service knows the node', async () => {
    const { json } = await service.admin('/status')
    return ['c', 'q'].every((tag) => json.chains[tag].nodes.mainnet.head !== null)
  })
  const { port } = new URL(service.base_url)

  test('the documents sign what is tried, and contact only the service', async () => {
    const { page, requests, errors } = await openPage(browser)
    // Another name for the same service: the page goes by its own address.
    const origin = `http://localhost:${port}`
    await page.goto(`${origin}/docs`)
    const documents = page.getByRole('navigation', { name: 'Documents' })
    const tried = [
      ['Administration', 'GetOrganizationByDomain', 'domain', tenant.domain],
      ['Chain query (Q)', 'GetBlock', 'block_number', '0'],
      ['Wallets C (EVM)', 'ListContracts'],
    ] as const
    for (const [tag, operation, field, value] of tried) {
      await documents.getByText(tag, { exact: true }).click()
      await documents.getByRole('link', { name: operation, exact: true }).click()
      await page.getByRole('heading', { name: operation, level: 1 }).waitFor()
      // The first one needs a credential; the session holds for the others.
      if (await page.getByLabel('api_key').isVisible()) {
        await page.getByLabel('api_key').fill(tenant.admin.api_key)
        await page.getByLabel('api_secret').fill(tenant.admin.api_secret)
        await page.getByRole('button', { name: 'Sign in' }).click()
      }
      await page.getByRole('button', { name: 'Call' }).waitFor()
      if (field) await page.getByLabel(new RegExp(`^${field}\\b`)).fill(value)
      await page.getByRole('button', { name: 'Call' }).click()
      await page.locator('.badge[data-tone=good]', { hasText: '200' }).waitFor()
    }
    const called = requests.filter(({ pathname }) => /^\/v1\/(?:q|c)\//.test(pathname))
    expect(called.map(({ pathname }) => pathname)).toEqual([
      '/v1/q/GetBlock',
      '/v1/c/ListContracts',
    ])
    // Only the chains of this installation are there.
    expect(await documents.getByText('Wallets T (TON)').count()).toBe(0)
    // The guide is under the same roof, and the search finds both.
    await page.keyboard.press('Escape')
    await page.getByRole('searchbox').fill('standard webhooks')
    await page.locator('.search-results a').first().click()
    await page.locator('.prose h2').first().waitFor()
    expect(page.url()).toMatch(/\/docs\/guide\//)
    const outside = requests.filter(
      ({ protocol, origin: to }) => protocol !== 'data:' && to !== origin,
    )
    expect([outside.map(String), errors]).toEqual([[], []])
    await page.close()
  })

  test('the built client calls from a page of an allowed origin, and of no other', async () => {
    const dist = join(await freshFolder(), 'dist')
    execFileSync(process.execPath, [join(root, 'client/build/build.ts'), dist])
    const files = await serveFolder(dist)
    const list = async (host: string) => {
      const { page, errors } = await openPage(browser)
      await page.goto(`http://${host}:${files.port}/examples/browser.html`)
      await page.fill('[name=base_url]', service.base_url)
      await page.fill('[name=api_key]', tenant.member.api_key)
      await page.fill('[name=api_secret]', tenant.member.api_secret)
      await page.click('button')
      await page.waitForFunction('document.querySelector("pre").textContent !== ""')
      const shown = await page.locator('pre').textContent()
      return { page, shown, errors }
    }
    const { wallet_id } = (
      await service.call(tenant.member, 'c/RegisterWallet', { name: 'seen in a page' })
    ).json
    const allowed = await list('localhost')
    expect(JSON.parse(allowed.shown ?? '')).toMatchObject([{ wallet_id, name: 'seen in a page' }])
    expect(allowed.errors).toEqual([])

    // The gateway too, with nothing but the key in the address.
    const chainId = await allowed.page.evaluate(async (url) => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}',
      })
      return (await answer.json()).result
    }, `${service.base_url}/c/mainnet/v1/${tenant.member.api_key}`)
    expect(chainId).toBe('0x7a69')

    const other = await list('127.0.0.1')
    expect(other.shown).toMatch(/^NETWORK_FAILED: /)
    expect(other.errors.join()).toContain('CORS')
  })
})

const types: Record<string, string> = { '.js': 'text/javascript', '.html': 'text/html' }

/** Serves the files of a folder, to pages of any name for this machine. */
async function serveFolder(folder: string): Promise<{ port: number }> {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url ?? '/', 'http://localhost').pathname)
    const bytes = await readFile(join(folder, path)).catch(() => undefined)
    response.writeHead(bytes ? 200 : 404, { 'content-type': types[extname(path)] ?? 'text/plain' })
    response.end(bytes)
  })
  server.listen(0)
  await once(server, 'listening')
  afterAll(() => server.close())
  return { port: (server.address() as AddressInfo).port }
}
