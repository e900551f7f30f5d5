import { chromium, type Page } from 'playwright-core'
import { startConsoleStub } from './console-stub.ts'
import { median } from './results.ts'

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
  listHeapMiB: number
  listElements: number
  /** From a jump in the whole list until the rows of that place are shown. */
  jumpMs: number
}

const wallet = '/wallets/c/01a1e365-138e-76cb-a2c4-75d15e22dfcc'

/** Measures with a real Chromium on a stub of the service. */
export async function measurePages(options: {
  directory: string
  executablePath: string
  events: number
  eventsPerSecond: number
  transfers: number
  rounds: number
}): Promise<PageFigures> {
  const { directory, executablePath, events, eventsPerSecond, transfers, rounds } = options
  const stub = await startConsoleStub({ directory, transfers })
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
      const page = await context.newPage()
      await signIn(page, stub.url)
      // The key is stored now: the next load shows the overview at once.
      await page.goto('about:blank')
      await page.goto(stub.url)
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      times.push(await page.evaluate(() => performance.now()))
      await context.close()
    }
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    await signIn(page, stub.url)
    await page.goto(stub.url + wallet)
    await page.locator('tr[data-row]').first().waitFor()
    await page.locator('.live[data-state=open]').waitFor()
    const live = await frames(page, async () => {
      await stub.send(events, eventsPerSecond)
      await page.locator(`tr:has([title]) >> nth=0`).waitFor()
    })
    const liveHeapMiB = await heapOf(page)
    await page.reload()
    await page.locator('tr[data-row]').first().waitFor()
    const list = await frames(page, () => page.evaluate(scrollToEnd, transfers))
    const jumps: number[] = []
    for (const share of [0.5, 0.1, 0.9, 0.3, 0.7]) jumps.push(await page.evaluate(jumpTo, share))
    return {
      jumpMs: median(jumps),
      interactiveMs: median(times),
      liveEvents: events,
      liveFramesPerSecond: live.perSecond,
      liveWorstFrameMs: live.worstMs,
      liveHeapMiB,
      listTransfers: transfers,
      listRowsRead: await page.evaluate(() =>
        Number(document.querySelector('table')?.getAttribute('aria-rowcount')),
      ),
      listFramesPerSecond: list.perSecond,
      listWorstFrameMs: list.worstMs,
      listHeapMiB: await heapOf(page),
      listElements: await page.evaluate(() => document.querySelectorAll('*').length),
    }
  } finally {
    await browser.close()
    await stub.stop()
  }
}

/** Scrolls to the end, and there again as often as the list grows. Runs in the page. */
async function scrollToEnd(rows: number): Promise<void> {
  const count = () => Number(document.querySelector('table')?.getAttribute('aria-rowcount') ?? 0)
  const deadline = performance.now() + 1_800_000
  while (count() <= rows && performance.now() < deadline) {
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

async function signIn(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.getByLabel('api_key').fill('plk_bench')
  await page.getByLabel('api_secret').fill('bench')
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
