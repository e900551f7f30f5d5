import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import manifest from '../../../package.json' with { type: 'json' }
import type { AppOptions, RunningService } from '../../app/app.ts'
import type { Overrides } from '../../app/config/schema.ts'
import type { ServerRole } from '../../app/config/server-roles.ts'
import type { DevEvent } from '../../app/embedded/event-line.ts'
import type { Log } from '../../lib/log.ts'
import { CliError, usageError } from '../cli-error.ts'
import { allLocalChains, type LocalChain } from '../options.ts'
import { type GlobalOptions, isWatched, note, outliveReader, print, type Shell } from '../shell.ts'
import { columnsOf } from '../table.ts'
import { onHangUp, terminalCheck } from './hang-up.ts'
import { createProgress, logAsProgress } from './progress.ts'
import { onStopSignal } from './stop-signals.ts'

type StartOptions = GlobalOptions & {
  port?: number
  chains?: LocalChain[]
  roles?: ServerRole[]
  traffic?: boolean
  reset?: boolean
}

/** Runs the service until a stop signal. */
export async function runStart(shell: Shell, options: StartOptions): Promise<void> {
  // By itself V8 lets what is dead pile up to the size of all that lives, and more, and the memory of the
  // service goes up and down with it. Less than this costs more: at 30 a gateway under full load marked
  // its whole heap once a second.
  setFlagsFromString('--heap-growing-percent=60')
  outliveReader(shell)
  const asked = Promise.withResolvers<string>()
  const stopping = new AbortController()
  const off = onStopSignal(process, {
    first: (signal) => {
      stopping.abort()
      asked.resolve(signal)
    },
    again: () => {
      note(shell, 'Forced to stop. The next start repairs what was left open.')
      process.exit(1)
    },
  })
  let reload: (() => Promise<unknown>) | undefined
  const offHangUp = onHangUp(
    process,
    {
      closed: () => {
        stopping.abort()
        asked.resolve('SIGHUP')
      },
      // During the start the configuration is being read anyway.
      reload: () => void reload?.(),
    },
    terminalCheck(shell.stdin.isTTY === true || shell.stdout.isTTY === true),
  )
  try {
    const { app, log, announce } = await start(shell, options, stopping.signal)
    reload = app.reload
    if (!stopping.signal.aborted) await announce()
    const signal = await asked.promise
    log.info({ signal }, 'stopping')
    // Ctrl-C should end the command quickly.
    if (signal === 'SIGTERM') await app.drain()
    await app.stop()
    log.info({}, 'stopped')
  } catch (error) {
    if (error !== stopping.signal.reason) throw error
    note(shell, 'Stopped during start.')
  } finally {
    off()
    offHangUp()
  }
}

const serverHeadStartMs = 200

type Started = { app: RunningService; log: Log; announce(): Promise<void> }

async function start(shell: Shell, options: StartOptions, signal: AbortSignal): Promise<Started> {
  const progress = isWatched(shell.stdout, shell.env) ? createProgress(shell.stdout) : undefined
  progress?.show(`Starting Portolan ${manifest.version} …`)
  try {
    const { readConfig } = await import('../configuration.ts')
    const { port, roles } = options
    const server = { ...(port !== undefined && { port }), ...(roles && { roles }) }
    const configure = (overrides: Overrides) => readConfig(shell, options, { server, ...overrides })
    const config = configure({})
    if (config.logging.format === 'json') progress?.done()
    const [{ createLogger }, { wantsLocalChains }, { workersOf }, { bannerFacts, bannerText }] =
      await Promise.all([
        import('../../app/logger.ts'),
        import('../../app/config/development.ts'),
        import('../../app/cluster/part.ts'),
        import('../../app/banner.ts'),
      ])
    const isLocal = wantsLocalChains(config)
    const notice = isLocal ? await findNotice(options.chains) : undefined
    const tags = notice === undefined ? (options.chains ?? allLocalChains) : []
    if (!isLocal && (options.reset || options.chains?.length))
      throw usageError(
        'Local chains and --reset are of the embedded mode: without a configuration file, database or chains of your own.',
      )
    const isOnLocalChains = isLocal && tags.length > 0
    if (isOnLocalChains && Number(config.server.workers) > 1)
      throw usageError(
        'With local chains the service is one process: server.workers above 1 needs chains of your own, or --chains none.',
      )
    const log = await createLogger(config.logging)
    const watched = progress && config.logging.format !== 'json' ? progress : undefined
    // On a terminal the banner says it.
    if (notice !== undefined && !watched) log.warn({}, notice)
    const starting = watched && logAsProgress(log, watched)
    const common = {
      env: shell.env,
      cwd: shell.cwd,
      log: starting?.log ?? log,
      version: manifest.version,
      setLogLevel: (level: string) => {
        log.level = level
      },
      attachLog: log.attach,
    }
    if (options.reset) {
      const { findDataDir } = await import('../configuration.ts')
      const { resetDataDir } = await import('../../app/embedded/reset.ts')
      await resetDataDir(await findDataDir(shell, config))
    }
    const showEvent = async (event: DevEvent) => {
      const { eventLines, eventFields } = await import('../../app/embedded/event-line.ts')
      if (watched) for (const line of eventLines(event, columnsOf(shell.stdout))) print(shell, line)
      else log.debug(eventFields(event), event.kind)
    }
    const local = isOnLocalChains
      ? await (await import('../../app/embedded/embedded.ts')).startEmbedded({
          ...common,
          configure,
          tags,
          traffic: options.traffic !== false,
          signal,
          onEvent: (event) => void showEvent(event),
        })
      : undefined
    const reread = () => configure({})
    const alone = { ...common, config, reread }
    const app =
      local ??
      (workersOf(config) > 1
        ? await startSeveral({ ...alone, signal })
        : await startAlone(alone, signal))
    const announce = async () => {
      const facts = bannerFacts(app, {
        version: manifest.version,
        // Since the process began: what a person has waited for.
        seconds: performance.now() / 1000,
        configFile: config.source.file,
        untracked: await app.untracked(),
        notRunning: local?.failed,
      })
      const { chainRows } = await import('../../app/embedded/chain-rows.ts')
      const chains = local ? await chainRows(local, local.admin_url) : []
      starting?.end()
      const flags = flagsOf(shell, options, app)
      if (watched) {
        const { demo, sign_in_url } = app
        const columns = columnsOf(shell.stdout)
        print(shell, bannerText(facts, { demo, flags, chains, sign_in_url, notice, columns }))
      } else log.info(facts, 'started')
    }
    return { app, log, announce }
  } catch (error) {
    progress?.done()
    throw error
  }
}

/** Starts a service of one process. */
async function startAlone(options: AppOptions, signal: AbortSignal): Promise<RunningService> {
  const server = await beginDatabase(options, signal)
  const { startApp } = await import('../../app/app.ts')
  return await startApp({ ...options, server: server?.promise, signal })
}

/** Starts a service of several processes, or of one that may become several. */
async function startSeveral(
  options: AppOptions & { signal: AbortSignal },
): Promise<RunningService> {
  const server = await beginDatabase(options, options.signal)
  const { startSupervisor } = await import('../../app/cluster/supervisor.ts')
  return await startSupervisor({ ...options, server: server?.promise })
}

/**
 * Starts the embedded database while modules are loaded, which keeps this thread busy for 600 ms. A server with data is
 * up within 120 ms; creating a new one takes longer, in processes of its own. An error is reported by the start of the
 * service.
 */
async function beginDatabase(options: AppOptions, signal: AbortSignal) {
  const { beginServer } = await import('../../app/data-directory.ts')
  const server = beginServer(options.config, { ...options, signal })
  await Promise.race([server?.catch(() => {}), delay(serverHeadStartMs)])
  return server && { promise: server }
}

/** Says why local chains cannot be started by default. Chains that were asked for are an error. */
async function findNotice(asked: readonly LocalChain[] | undefined): Promise<string | undefined> {
  if (asked?.length === 0) return undefined
  const { missingLocalChains } = await import('../../app/embedded/local-chains.ts')
  const notice = missingLocalChains()
  if (notice !== undefined && asked) throw new CliError(notice)
  return notice
}

/** The options without which another command in this folder would look elsewhere. */
function flagsOf(
  shell: Shell,
  options: StartOptions,
  { dataDir }: Pick<RunningService, 'dataDir'>,
): string {
  if (options.config !== undefined) return ` --config ${options.config}`
  // A variable may have been given to this one command only.
  const isNamed = options.dataDir !== undefined || shell.env.PORTOLAN_DATA_DIR !== undefined
  return isNamed && dataDir !== join(shell.cwd, '.data') ? ` --data-dir ${dataDir}` : ''
}
