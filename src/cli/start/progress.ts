import type { Log } from '../../lib/log.ts'
import type { Output } from '../shell.ts'

/** One line of a terminal that says what is going on. */
export type Progress = { show(text: string): void; done(): void }

const eraseLine = '\r\u001b[2K'

/** Shows one text after the other on the same line. */
export function createProgress(output: Output): Progress {
  let shown = false
  return {
    show: (text) => {
      shown = true
      output.write(`${eraseLine}  ${text}`)
    },
    done: () => {
      if (shown) output.write(eraseLine)
      shown = false
    },
  }
}

const steps: Readonly<Record<string, string>> = {
  'starting the local chains': 'Starting the local chains …',
  'local chain started': 'Starting the local chains …',
  'creating the embedded database': 'Creating the database …',
  'the embedded PostgreSQL is ready': 'Opening the database …',
  'database schema migrated': 'Getting ready …',
}

/** A log that becomes the progress line until the service is ready; warnings are written as ever. */
export function logAsProgress(
  log: Log,
  progress: Progress,
): { log: Log /** From now on everything is written. */; end(): void } {
  let starting = true
  const pass =
    (level: 'warn' | 'error'): Log['warn'] =>
    (fields, message) => {
      if (starting) progress.done()
      log[level](fields, message)
    }
  return {
    log: {
      debug: (fields, message) => log.debug(fields, message),
      info: (fields, message) => {
        if (!starting) return log.info(fields, message)
        const step = steps[message]
        if (step !== undefined) progress.show(step)
      },
      warn: pass('warn'),
      error: pass('error'),
    },
    end: () => {
      starting = false
      progress.done()
    },
  }
}
