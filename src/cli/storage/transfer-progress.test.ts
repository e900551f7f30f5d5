import { Readable, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createTransferProgress, movedText } from './transfer-progress.ts'

const progressOn = (isTTY: boolean, env = {}) => {
  const written: string[] = []
  const stderr = Object.assign(
    new Writable({ write: (chunk, _, done) => done(void written.push(String(chunk))) }),
    { isTTY, columns: 80 },
  )
  let time = 0
  const shell = {
    env,
    cwd: '/',
    stdin: Readable.from([]),
    stdout: new Writable(),
    stderr,
    setExitCode: () => {},
  }
  const progress = createTransferProgress(shell, () => time)
  const reportAt = (ms: number, more: object = {}) => {
    time = ms
    const counts = { rows: 12_345, bytes: 2 ** 21, ...more }
    progress.report({ table: 'wallet', tablesDone: 1, tableCount: 9, ...counts })
  }
  return { written, reportAt, done: progress.done }
}

const text = '1/9 tables, 12,345 rows, 2.0 MiB, now wallet'

test('moves one line on a terminal, at once and then every 100 ms', () => {
  const { written, reportAt, done } = progressOn(true)
  reportAt(50)
  reportAt(149)
  reportAt(150)
  done()
  const line = `\r\u001b[2K${text}`
  expect(written).toEqual([line, line, '\r\u001b[2K'])
})

test('80 columns have the share, the rate and the time left of a large export', () => {
  const { written, reportAt } = progressOn(true)
  const total = { totalRows: 250_000_000, bytes: 2 ** 34 }
  reportAt(0, { ...total, rows: 0 })
  reportAt(1_000_000, { ...total, rows: 100_000_000 })
  expect(written[1]?.slice('\r\u001b[2K'.length)).toBe(
    '[####........] 40 %, 100,000,000 rows, 100,000/s, 25 min left, 1/9 tables, 1638',
  )
})

test.each([
  ['no terminal', false, {}],
  ['CI', true, { CI: 'true' }],
])('writes a line occasionally with %s', (_, isTTY, env) => {
  const { written, reportAt, done } = progressOn(isTTY, env)
  for (const ms of [1000, 5000, 6000, 9999, 10_000]) reportAt(ms)
  done()
  expect(written).toEqual([`${text}\n`, `${text}\n`])
})

test('reports what was moved', () => {
  const moved = { tables: 3, rows: 1, bytes: 0, schemaVersion: '0004-x' }
  expect(movedText(moved)).toBe('3 tables, 1 rows, 0.0 MiB, schema version 0004-x')
})
