import { Writable } from 'node:stream'
import { createLogger, type LeveledLog } from '../../src/app/logger.ts'

/** The log of one service, kept in memory. */
export type CapturedLog = {
  log: LeveledLog
  text(): string
  /** Every line as an object. */
  lines(): LogLine[]
}

/** One line of the log. */
export type LogLine = { level: string; msg: string; request_id?: string; [field: string]: unknown }

const secrets = new Set<string>()
const signatures = new Set<string>()
let file: string | undefined

/** Files of one process share this module; what an earlier file noted would only take time. */
const forgetOtherFiles = (): void => {
  const worker = (globalThis as { __vitest_worker__?: { filepath?: string } }).__vitest_worker__
  if (worker?.filepath === file) return
  file = worker?.filepath
  secrets.clear()
  signatures.clear()
}

/** Says that this text must never be logged. */
export const noteSecret = (text: string): void => {
  forgetOtherFiles()
  if (text.length >= 8) secrets.add(text)
}

/** Says that this signature must never be logged. */
export const noteSignature = (hex: string): void => {
  forgetOtherFiles()
  signatures.add(hex)
}

/** A log at its most talkative level. */
export const captureLog = async (): Promise<CapturedLog> => {
  const chunks: string[] = []
  const destination = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk))
      done()
    },
  })
  const log = await createLogger({ level: 'trace', format: 'json', destination })
  const text = () => chunks.join('')
  const lines = () =>
    text()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LogLine)
  return { log, text, lines }
}

/** What a text gives away of the credentials and signatures of this test file. */
export const leaksIn = (text: string): string[] => {
  const words = text.match(/[0-9a-f]{64}/g) ?? []
  return [
    ...[...secrets].filter((secret) => text.includes(secret)),
    ...words.filter((word) => signatures.has(word)),
  ]
}
