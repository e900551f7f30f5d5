import { chromium, type Page } from 'playwright-core'
import { startConsoleService } from './console-service.ts'
import { startConsoleStub } from './console-stub.ts'
import { median } from './results.ts'

/** The page when so many rows were read. */
export type ListMark = { rows: number; heapMiB: number; elements: number }

/** What a browser measured on the pages of the console. */
export type PageFigures = {
  /** From the navigation to a usable overview, without a cache. */
  interactiveMs: number
  liveEvents: number
  liveFramesPerSecond: number
  liveWorstFrameMs: number
  liveHeapMiB: number
  listTransfers: number
  listRowsRead: number
  listFramesPerSecond: number
  listWorstFrameMs: number
  /** While the list was read, at even distances. */
  listMarks: readonly ListMark[]
  /** From a jump in the whole list until the rows of that place are shown. */
  jumpMs: number
}

const wallet = '/wallets/c/01a1e365-138e-76cb-a2c4-75d15e22dfcc'

/** Measures with a real Chromium: loading and live events on a stub, the long list on the service and its database. */
export async function measurePages(options: {
  directory: string
  executablePath: string
  events: number
  eventsPerSecond: number
  transfers: number
  /** How long the list is scrolled at most. */
  listSeconds: number
  rounds: number
}): Promise<PageFigures> {
  const { directory, executablePath, events, eventsPerSecond, transfers, rounds } = options
  await using opened = new AsyncDisposableStack()
  const stub = await startConsoleStub({ directory, transfers: 1_000 })
  opened.defer(stub.stop)
  const service = await startConsoleService(transfers)
  opened.defer(service.stop)
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  opened.defer(() => browser.close())
  const viewport = { width: 1440, height: 900 }
  const stubPair = { api_key: 'plk_bench', api_secret: 'bench' }
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const context = await browser.newContext({ viewport })
    const page = await context.newPage()
    await signIn(page, stub.url, stubPair)
    // The key is stored now: the next load shows the overview at once.
    await page.goto('about:blank')
    await page.goto(stub.url)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    times.push(await page.evaluate(() => performance.now()))
    await context.close()
  }
  const page = await browser.newPage({ viewport })
  await signIn(page, stub.url, stubPair)
  await page.goto(stub.url + wallet)
  await page.locator('tr[data-row]').first().waitFor()
  await page.locator('.live[data-state=open]').waitFor()
  const live = await frames(page, async () => {
    await stub.send(events, eventsPerSecond)
    await page.locator(`tr:has([title]) >> nth=0`).waitFor()
  })
  const liveHeapMiB = await heapOf(page)
  await page.close()

  const listPage = await browser.newPage({ viewport })
  await signIn(listPage, service.url, service.pair)
  await listPage.goto(`${service.url}/wallets/c/${service.wallet_id}`)
  await listPage.locator('tr[data-row]').first().waitFor()
  const marks: ListMark[] = []
  // The row of the headings is counted too.
  const rowsRead = () =>
    listPage.evaluate(
      () => Number(document.querySelector('table')?.getAttribute('aria-rowcount') ?? 1) - 1,
    )
  const list = await frames(listPage, async () => {
    const deadline = performance.now() + options.listSeconds * 1000
    for (let part = 1; part <= markCount; part++) {
      const left = deadline - performance.now()
      await listPage.evaluate(scrollTo, {
        rows: Math.ceil((transfers * part) / markCount),
        left: left / (markCount - part + 1),
      })
      marks.push({
        rows: await rowsRead(),
        heapMiB: await heapOf(listPage),
        elements: await listPage.evaluate(() => document.querySelectorAll('*').length),
      })
    }
  })
  const jumps: number[] = []
  for (const share of [0.5, 0.1, 0.9, 0.3, 0.7]) jumps.push(await listPage.evaluate(jumpTo, share))
  return {
    jumpMs: median(jumps),
    interactiveMs: median(times),
    liveEvents: events,
    liveFramesPerSecond: live.perSecond,
    liveWorstFrameMs: live.worstMs,
    liveHeapMiB,
    listTransfers: transfers,
    listRowsRead: await rowsRead(),
    listFramesPerSecond: list.perSecond,
    listWorstFrameMs: list.worstMs,
    listMarks: marks,
  }
}

const markCount = 5

/** Scrolls to the end, and there again as often as the list grows. Runs in the page. */
async function scrollTo({ rows, left }: { rows: number; left: number }): Promise<void> {
  const count = () =>
    Number(document.querySelector('table')?.getAttribute('aria-rowcount') ?? 1) - 1
  const deadline = performance.now() + left
  while (count() < rows && performance.now() < deadline) {
    window.scrollTo(0, document.documentElement.scrollHeight)
    await new Promise(requestAnimationFrame)
  }
}

/** Scrolls to a part of the list and waits for the rows of that place. Runs in the page. */
async function jumpTo(share: number): Promise<number> {
  const begun = performance.now()
  window.scrollTo(0, document.documentElement.scrollHeight * share)
  const isThere = () => {
    const rows = [...document.querySelectorAll('tbody tr')].filter((row) => {
      const { top, bottom } = row.getBoundingClientRect()
      return !row.classList.contains('spacer') && bottom > 0 && top < window.innerHeight
    })
    return rows.length > 10 && rows.every((row) => row.hasAttribute('data-row'))
  }
  for (let frame = 0; frame < 2 || !isThere(); frame++) {
    if (performance.now() - begun > 30_000) return Number.NaN
    await new Promise(requestAnimationFrame)
  }
  return performance.now() - begun
}

async function signIn(
  page: Page,
  url: string,
  pair: { api_key: string; api_secret: string },
): Promise<void> {
  await page.goto(url)
  await page.getByLabel('api_key').fill(pair.api_key)
  await page.getByLabel('api_secret').fill(pair.api_secret)
  await page.getByLabel('Stay signed in').check()
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}

/** Counts the frames of the page while something happens. */
async function frames(
  page: Page,
  work: () => Promise<void>,
): Promise<{ perSecond: number; worstMs: number }> {
  await page.evaluate(() => {
    const counted = { count: 0, worst: 0, begun: performance.now(), last: performance.now() }
    Object.assign(window, { counted })
    const tick = (now: number) => {
      counted.count++
      counted.worst = Math.max(counted.worst, now - counted.last)
      counted.last = now
      requestAnimationFrame(tick)
    }
    requestAnimationFrame(tick)
  })
  await work()
  return await page.evaluate(() => {
    const { count, worst, begun } = (
      window as unknown as { counted: { count: number; worst: number; begun: number } }
    ).counted
    return { perSecond: (count * 1000) / (performance.now() - begun), worstMs: worst }
  })
}

/** The heap of the page after a collection. */
async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  await session.send('Performance.enable')
  const { metrics } = await session.send('Performance.getMetrics')
  await session.detach()
  return (metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0) / 1_048_576
}
