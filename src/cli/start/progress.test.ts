import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createProgress, logAsProgress } from './progress.ts'

const recorder = () => {
  const written: string[] = []
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      written.push(String(chunk))
      done()
    },
  })
  const log = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [
      level,
      (_: object, message: string) => written.push(`${level}: ${message}`),
    ]),
  ) as never
  return { written, output, log }
}

const erase = '\r\u001b[2K'

test('steps of the start move one line; warnings and what follows are written', () => {
  const { written, output, log } = recorder()
  const starting = logAsProgress(log, createProgress(output))
  starting.log.info({}, 'creating the embedded database')
  starting.log.info({}, 'an unrelated line')
  starting.log.warn({}, 'careful')
  starting.log.debug({}, 'the embedded PostgreSQL is ready')
  starting.end()
  starting.log.info({}, 'ready')
  expect(written).toEqual([
    `${erase}  Creating the database …`,
    erase,
    'warn: careful',
    `${erase}  Opening the database …`,
    erase,
    'info: ready',
  ])
})

test('nothing is erased that was not shown', () => {
  const { written, output } = recorder()
  createProgress(output).done()
  expect(written).toEqual([])
})

test('shows which local chains are still starting, and what takes long', () => {
  const { written, output, log } = recorder()
  const starting = logAsProgress(log, createProgress(output))
  starting.log.debug({ chains: ['c', 't'] }, 'starting the local chains')
  starting.log.info({ chains: ['c'] }, 'fetching the programs of local chains')
  starting.log.debug({ chain: 't' }, 'local chain started')
  starting.log.debug({ chain: 'c' }, 'local chain started')
  expect(written).toEqual([
    `${erase}  Starting the local chains … C, T`,
    `${erase}  Starting the local chains … C, T`,
    `${erase}  Fetching the programs of C (the first time only) …`,
    `${erase}  Starting the local chains …`,
  ])
})
