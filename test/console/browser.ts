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

/** Of all rules, those that depend on the colours of the theme. */
const colourRules = ['color-contrast', 'link-in-text-block']

/** The violations that axe finds on a page. */
export function audit(page: Page, name: string): Promise<string[]> {
  return runAxe(page, name, {
    type: 'tag',
    values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  })
}

/** The violations that axe finds in the colours of a page that was audited in its other theme. */
export function auditColours(page: Page, name: string): Promise<string[]> {
  return runAxe(page, name, { type: 'rule', values: colourRules })
}

async function runAxe(page: Page, name: string, runOnly: axe.RunOnly): Promise<string[]> {
  const found = await page.evaluate(async (rules) => {
    const run = (window as unknown as { axe: { run(options: object): Promise<axe.AxeResults> } })
      .axe
    const { violations } = await run.run({
      runOnly: rules,
      resultTypes: ['violations'],
      // No rule here reads the style sheets, and there are no frames.
      preload: false,
      iframes: false,
    })
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(' | ')}`,
    )
  }, runOnly)
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
