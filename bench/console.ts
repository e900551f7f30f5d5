import { spawnSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { measurePages } from './lib/console-pages.ts'
import { table, writeSection } from './lib/results.ts'

// `SMALL=1 node bench/console.ts` tries the program in seconds; its figures mean nothing.
const size =
  process.env.SMALL === undefined
    ? { events: 10_000, eventsPerSecond: 500, transfers: 1_000_000, listSeconds: 240, rounds: 5 }
    : { events: 100, eventsPerSecond: 200, transfers: 20_000, listSeconds: 20, rounds: 1 }

/** The bound of the first load, brotli, JavaScript and CSS together. */
const goalBytes = 80 * 1024

const dist = join(import.meta.dirname, '../console/dist')
const names = (await readdir(join(dist, 'assets'))).filter((name) => /\.(?:js|css)$/.test(name))
const html = await readFile(join(dist, 'index.html'), 'utf8')
const sizes = new Map(
  await Promise.all(names.map(async (name) => [name, await sizeOf(name)] as const)),
)

async function sizeOf(name: string): Promise<{ brotli: number; gzip: number; text: string }> {
  const bytes = await readFile(join(dist, 'assets', name))
  const [brotli, zipped] = await Promise.all([
    promisify(brotliCompress)(bytes),
    promisify(gzip)(bytes, { level: 9 }),
  ])
  return { brotli: brotli.length, gzip: zipped.length, text: bytes.toString() }
}

/** A file and all that it imports at once; lazy chunks are not in it. */
function closureOf(entries: readonly string[]): Set<string> {
  const found = new Set<string>()
  const visit = (name: string): void => {
    if (found.has(name) || !sizes.has(name)) return
    found.add(name)
    const text = sizes.get(name)?.text ?? ''
    for (const [, next] of text.matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g))
      visit(next!)
  }
  for (const name of entries) visit(name)
  return found
}

const total = (files: Iterable<string>, kind: 'brotli' | 'gzip'): number =>
  [...files].reduce((sum, name) => sum + (sizes.get(name)?.[kind] ?? 0), 0)
const kilobytes = (bytes: number) => `${(bytes / 1024).toFixed(1)} KB`

const first = closureOf(
  [...html.matchAll(/assets\/([^"']+\.(?:js|css))/g)].map(([, name]) => name!),
)
const pages = (await readdir(join(dist, '../src/pages'))).flatMap((name) =>
  name.endsWith('.tsx') ? [name.slice(0, -'.tsx'.length)] : [],
)
const rows = pages.map((page) => {
  const entry = names.filter((name) => new RegExp(`^${page}-[\\w-]{8}\\.(?:js|css)$`).test(name))
  const more = new Set([...closureOf(entry)].filter((name) => !first.has(name)))
  return [page, kilobytes(total(more, 'brotli')), kilobytes(total(more, 'gzip'))]
})
const executablePath = ['chromium', 'chromium-browser', 'google-chrome']
  .map((name) => spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim())
  .find(Boolean)
const measured =
  executablePath && (await measurePages({ directory: dist, executablePath, ...size }))
const whole = (value: number) => Math.round(value)
const figures = measured
  ? table(
      ['In Chromium, 1440 by 900', 'value'],
      [
        ['overview usable after (median of the rounds)', `${whole(measured.interactiveMs)} ms`],
        [
          `${measured.liveEvents} live events at ${size.eventsPerSecond} a second: frames a second`,
          whole(measured.liveFramesPerSecond),
        ],
        ['longest frame', `${whole(measured.liveWorstFrameMs)} ms`],
        ['heap afterwards', `${whole(measured.liveHeapMiB)} MiB`],
        [
          `list of ${measured.listTransfers} transfers of a running service, ${measured.listRowsRead} rows read by key: frames a second`,
          whole(measured.listFramesPerSecond),
        ],
        ['longest frame', `${whole(measured.listWorstFrameMs)} ms`],
        ...measured.listMarks.map(({ rows, heapMiB, elements }) => [
          `heap and elements of the document after ${rows} rows`,
          `${whole(heapMiB)} MiB, ${elements}`,
        ]),
        [
          'jump to a place whose page was dropped, until its rows are there (median)',
          `${whole(measured.jumpMs)} ms`,
        ],
      ],
    )
  : 'No Chromium: pages were not measured.'
if (total(first, 'brotli') > goalBytes) process.exitCode = 1
await writeSection(
  'Console',
  'node bench/console.ts',
  `${table(
    ['Part', 'brotli', 'gzip'],
    [
      [
        'first load (goal: 80 KB)',
        kilobytes(total(first, 'brotli')),
        kilobytes(total(first, 'gzip')),
      ],
      ...rows.map(([page, ...values]) => [`page ${page}`, ...values]),
      [
        'charts, with the first one',
        kilobytes(
          total(
            names.filter((name) => name.startsWith('plot-')),
            'brotli',
          ),
        ),
        kilobytes(
          total(
            names.filter((name) => name.startsWith('plot-')),
            'gzip',
          ),
        ),
      ],
    ],
  )}

${figures}`,
)
