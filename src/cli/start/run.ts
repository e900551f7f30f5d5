import { join } from 'node:path'
import manifest from '../../../package.json' with { type: 'json' }
import type { App } from '../../app/app.ts'
import type { Log } from '../../lib/log.ts'
import { type GlobalOptions, isWatched, note, print, type Shell } from '../shell.ts'
import { createProgress, logAsProgress } from './progress.ts'
import { onStopSignal } from './stop-signals.ts'

type StartOptions = GlobalOptions & { port?: number }

/** Runs the service until it is told to stop. */
export async function runStart(shell: Shell, options: StartOptions): Promise<void> {
  const asked = Promise.withResolvers<string>()
  let stopping = false
  const off = onStopSignal(process, {
    first: (signal) => {
      stopping = true
      asked.resolve(signal)
    },
    again: () => {
      note(shell, 'Forced to stop. The next start repairs what was left open.')
      process.exit(1)
    },
  })
  try {
    const { app, log, announce } = await start(shell, options)
    if (!stopping) announce()
    const signal = await asked.promise
    log.info({ signal }, 'stopping')
    await app.stop()
    log.info({}, 'stopped')
  } finally {
    off()
  }
}

type Started = { app: App; log: Log; announce(): void }

async function start(shell: Shell, options: StartOptions): Promise<Started> {
  const progress = isWatched(shell.stdout, shell.env) ? createProgress(shell.stdout) : undefined
  progress?.show(`Starting Portolan ${manifest.version} …`)
  try {
    const { readConfig } = await import('../configuration.ts')
    const overrides = options.port === undefined ? {} : { server: { port: options.port } }
    const config = readConfig(shell, options, overrides)
    if (config.logging.format === 'json') progress?.done()
    const [{ createLogger }, { startApp }, { bannerFacts, bannerText }] = await Promise.all([
      import('../../app/logger.ts'),
      import('../../app/app.ts'),
      import('../../app/banner.ts'),
    ])
    const log = await createLogger(config.logging)
    const watched = progress && config.logging.format !== 'json' ? progress : undefined
    const starting = watched && logAsProgress(log, watched)
    const app = await startApp({
      config,
      env: shell.env,
      cwd: shell.cwd,
      log: starting?.log ?? log,
      version: manifest.version,
    })
    const announce = () => {
      const facts = bannerFacts(app, {
        version: manifest.version,
        // Since the process began: what a person has waited for.
        seconds: performance.now() / 1000,
        configFile: config.source.file,
      })
      starting?.end()
      if (watched)
        print(shell, bannerText(facts, { demo: app.demo, flags: flagsOf(shell, options, app) }))
      else log.info(facts, 'started')
    }
    return { app, log, announce }
  } catch (error) {
    progress?.done()
    throw error
  }
}

/** The options without which another command in this folder would look elsewhere. */
function flagsOf(shell: Shell, options: StartOptions, { dataDir }: App): string {
  if (options.config !== undefined) return ` --config ${options.config}`
  return options.dataDir === undefined || dataDir === join(shell.cwd, '.data')
    ? ''
    : ` --data-dir ${dataDir}`
}
