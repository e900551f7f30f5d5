import { spawnSync } from 'node:child_process'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll } from 'vitest'
import { installPackage } from './debian.ts'

const names = ['chromium', 'chromium-browser', 'google-chrome']
const findBinary = (): string | undefined => {
  for (const name of names) {
    const { status, stdout } = spawnSync('which', [name], { encoding: 'utf8' })
    if (status === 0) return stdout.trim()
  }
  return undefined
}

const installBinary = async (): Promise<string | undefined> => {
  await installPackage('chromium')
  return findBinary()
}

/**
 * A real browser, closed after the file; undefined, with the reason printed, on a machine that has
 * none and cannot install it. In CI that is an error, so that the suite is not skipped unnoticed.
 */
export const startChromium = async (): Promise<Browser | undefined> => {
  const executablePath = findBinary() ?? (await installBinary())
  if (executablePath === undefined) {
    const reason = 'no chromium here, and it cannot be installed (apt-get, as root)'
    if (process.env.CI) throw new Error(reason)
    console.warn(`skipped: ${reason}`)
    return undefined
  }
  // Its sandbox refuses to run as root, which is who runs tests in a container.
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu'],
    timeout: 120_000,
  })
  afterAll(() => browser.close())
  return browser
}

/** What a page did that a test wants to know. */
export type Watched = { page: Page; requests: URL[]; errors: string[] }

/** A new page, with everything that it asks for and every error of its scripts. */
export const openPage = async (browser: Browser): Promise<Watched> => {
  const page = await browser.newPage()
  page.setDefaultTimeout(120_000)
  const requests: URL[] = []
  const errors: string[] = []
  page.on('request', (request) => requests.push(new URL(request.url())))
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text())
  })
  return { page, requests, errors }
}
