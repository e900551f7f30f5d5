import { expect, it } from 'vitest'
import { silentLog } from './log.ts'
import { createOutage } from './outage.ts'

const open = () => {
  const lines: unknown[] = []
  const write = (level: string) => (fields: object, msg: string) =>
    void lines.push({ level, msg, ...fields })
  let now = 1_000
  const log = {
    ...silentLog,
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
  }
  const outage = createOutage({ log, now: () => now, begins: 'it fails', ends: 'it works' })
  const pass = (ms: number) => {
    now += ms
  }
  return { outage, lines, pass }
}

it('logs an outage when it begins and when it is over, whatever the number of failures', () => {
  const { outage, lines, pass } = open()
  const error = new Error('gone')
  outage.recovered()
  outage.failed(error, { retry_ms: 5 })
  pass(1_500)
  outage.failed(new Error('still gone'))
  outage.recovered()
  outage.recovered()
  expect(lines).toEqual([
    { level: 'warn', msg: 'it fails', err: error, retry_ms: 5 },
    { level: 'debug', msg: 'it fails', reason: 'still gone' },
    { level: 'info', msg: 'it works', failures: 2, seconds: 1.5 },
  ])
})

it('shows the last error with its time until it is over', () => {
  const { outage, pass } = open()
  expect(outage.last()).toBeUndefined()
  outage.failed(new Error('a'))
  pass(10)
  outage.failed('b')
  expect(outage.last()).toEqual({ message: 'b', time: 1_010 })
  outage.recovered()
  expect(outage.last()).toBeUndefined()
})
