// One process of a service that a supervisor started. It runs the app with the roles it is given, and does what the
// supervisor says: signals of the terminal are the supervisor's to interpret. It ends when the supervisor is gone.

import { setFlagsFromString } from 'node:v8'
import type { Log } from '../../lib/log.ts'
import { createLogger } from '../logger.ts'
import { createPartService } from './part-service.ts'

// As in a single process (cli/start/run.ts).
setFlagsFromString('--heap-growing-percent=60')

const lastWordsMs = 2_000

let log: Log | undefined
const service = createPartService({
  env: process.env,
  send: (message) => {
    if (process.connected) process.send?.(message)
  },
  openLog: async ({ config, plan }) => {
    const logger = await createLogger(config.logging)
    log = withField(logger, { process: plan.name })
    return {
      log,
      attachLog: logger.attach,
      setLogLevel: (level) => {
        logger.level = level
      },
    }
  },
  onEnded: (code) => {
    process.exitCode = code
    // The pipe to the supervisor would keep the process.
    process.disconnect?.()
  },
})

const withField = (to: Log, fields: object): Log => ({
  debug: (given, message) => to.debug({ ...fields, ...given }, message),
  info: (given, message) => to.info({ ...fields, ...given }, message),
  warn: (given, message) => to.warn({ ...fields, ...given }, message),
  error: (given, message) => to.error({ ...fields, ...given }, message),
})

process.on('message', service.channel.receive)
// The supervisor is gone, and the next one needs the port at once: an exit of Node can take seconds. Before the listener of
// Node's own cluster, which exits.
process.prependListener('disconnect', () => {
  if (!service.isEnding()) process.kill(process.pid, 'SIGKILL')
})
// A Ctrl-C reaches all processes of the terminal.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
process.on('SIGTERM', () => void service.channel.ask('terminate').catch(() => {}))
process.on('uncaughtException', (error) => {
  log?.error({ err: error }, 'the process fails and is replaced')
  service.app()?.retire()
  setTimeout(() => process.exit(1), lastWordsMs).unref()
  void service.end(1).then(() => process.exit(1))
})
