import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import axe from 'axe-core'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll } from 'vitest'

/** A page with every error, policy violation and request of it. */
export type Watched = { page: Page; errors: string[]; requests: string[] }

/** Opens a page and records what it does. */
export async function watch(context: BrowserContext): Promise<Watched> {
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const errors: string[] = []
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text())
  })
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`CSP: ${violatedDirective} ${blockedURI}`)
    })
  })
  return { page, errors, requests }
}

/** The violations that axe finds on a page. */
export async function audit(page: Page, name: string): Promise<string[]> {
  const found = await page.evaluate(async () => {
    const run = (window as unknown as { axe: { run(options: object): Promise<axe.AxeResults> } })
      .axe
    const { violations } = await run.run({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      resultTypes: ['violations'],
    })
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(' | ')}`,
    )
  })
  return found.map((text) => `${name}: ${text}`)
}

/** The source of axe, for a page that is about to be audited. */
export const axeSource: string = axe.source

/** A server of another origin, closed after the file. */
export async function startOrigin(handle: RequestListener): Promise<string> {
  const server = createServer(handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
