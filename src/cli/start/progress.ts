import type { Log } from '../../lib/log.ts'
import type { Output } from '../shell.ts'

/** One line of a terminal that says what is continuing. */
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
  const chains = waitedFor()
  // Steps of every start are of level debug: a log that is not watched has one line for a start.
  const showStep = (fields: object, message: string): boolean => {
    const step = starting ? (chains(fields, message) ?? steps[message]) : undefined
    if (step !== undefined) progress.show(step)
    return step !== undefined
  }
  const pass =
    (level: 'warn' | 'error'): Log['warn'] =>
    (fields, message) => {
      if (starting) progress.done()
      log[level](fields, message)
    }
  return {
    log: {
      debug: (fields, message) => {
        if (!showStep(fields, message)) log.debug(fields, message)
      },
      info: (fields, message) => {
        if (!starting) return log.info(fields, message)
        showStep(fields, message)
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

type ChainFields = { chain?: string; chains?: readonly string[] }

/** Describes the local chains that are still starting; undefined for other lines. */
function waitedFor(): (fields: object, message: string) => string | undefined {
  let waiting: readonly string[] = []
  let fetched: readonly string[] = []
  const text = () => {
    const rest = waiting.map((tag) => tag.toUpperCase()).join(', ')
    if (waiting.length > 0 && waiting.every((tag) => fetched.includes(tag)))
      return `Fetching the programs of ${rest} (the first time only) …`
    return waiting.length === 0
      ? 'Starting the local chains …'
      : `Starting the local chains … ${rest}`
  }
  return (fields, message) => {
    const { chain, chains = [] } = fields as ChainFields
    if (message === 'starting the local chains') waiting = chains
    else if (message === 'fetching the programs of local chains') fetched = chains
    else if (message === 'local chain started') waiting = waiting.filter((tag) => tag !== chain)
    else return undefined
    return text()
  }
}
