import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createLogger, type LoggerOptions } from './logger.ts'

const open = async (options: Partial<LoggerOptions> = {}, isTTY = false) => {
  const destination = Object.assign(new PassThrough(), { isTTY })
  const log = await createLogger({ level: 'trace', format: 'json', destination, ...options })
  let all = ''
  destination.on('data', (chunk) => {
    all += chunk
  })
  const text = () => all
  return { log, text }
}

describe('the log', () => {
  it('is one line of JSON per event, with the time, the level and the message', async () => {
    const { log, text } = await open()
    log.info({ request_id: 'r' }, 'ready')
    log.warn({}, 'careful')
    await expect.poll(text).toContain('careful')
    const [first, second] = text()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(first).toEqual({
      level: 'info',
      time: expect.any(String),
      request_id: 'r',
      msg: 'ready',
    })
    expect(first.time).toMatch(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/)
    expect(second).toMatchObject({ level: 'warn', msg: 'careful' })
  })

  it('omits messages below its level', async () => {
    const { log, text } = await open({ level: 'warn' })
    log.debug({}, 'a')
    log.info({}, 'b')
    log.error({}, 'c')
    await expect.poll(text).toContain('"c"')
    expect(text().match(/"msg"/g)).toHaveLength(1)
  })

  it('shows the cause of an error with its stack', async () => {
    const { log, text } = await open()
    log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed')
    await expect.poll(text).toContain('\n')
    const { err } = JSON.parse(text())
    expect(err.message).toContain('outer')
    expect(err.message).toContain('inner')
    expect(err.stack).toContain('logger.test.ts')
  })

  it.each([
    'api_key',
    'api_secret',
    'x-api-key',
    'x-api-signature',
    'authorization',
    'password',
    'connectionString',
  ])('never shows a field %s, however an object carries it', async (name) => {
    const { log, text } = await open()
    log.info({ [name]: 'hunter2' }, 'a')
    log.info({ one: { [name]: 'hunter2' } }, 'b')
    log.info({ one: { two: { [name]: 'hunter2' } } }, 'c')
    log.error({ err: Object.assign(new Error('x'), { [name]: 'hunter2' }) }, 'd')
    log.error({ err: Object.assign(new Error('x'), { config: { [name]: 'hunter2' } }) }, 'e')
    log.error({ cause: Object.assign(new Error('x'), { [name]: 'hunter2' }) }, 'f')
    log.info({ list: [{ [name]: 'hunter2' }] }, 'g')
    await expect.poll(text).toContain('"g"')
    expect(text()).not.toContain('hunter2')
    expect(text().match(/\[redacted\]/g)).toHaveLength(7)
  })

  it('is written for people on a terminal, with the same fields hidden', async () => {
    const { log, text } = await open({ format: 'pretty' })
    log.info({ api_key: 'hunter2', port: 4000 }, 'ready')
    await expect.poll(text).toMatch(/INFO.*ready[\s\S]*port: 4000/)
    expect(text()).not.toContain('hunter2')
  })
})
