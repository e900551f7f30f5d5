import { expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import type { Config, Overrides } from '../config/schema.ts'
import { mergeLive } from './difference.ts'
import { createReloader, type ReloadOutcome } from './reload.ts'

const load = (overrides: Overrides) => loadConfig({ env: {}, cwd: '/', overrides })

const open = (read: () => Config, apply: () => Promise<void> = async () => {}) => {
  const started = load({})
  let running = started
  const seen: ReloadOutcome[] = []
  const reloader = createReloader({
    read,
    current: () => running,
    apply: async (next) => {
      await apply()
      running = mergeLive(started, next)
    },
    clock: systemClock,
    log: silentLog,
    onReloaded: (outcome) => seen.push(outcome),
  })
  return { reloader, seen, running: () => running }
}

test('names what was applied and what needs a restart', async () => {
  const { reloader, running } = open(() =>
    load({ logging: { level: 'debug' }, server: { port: 4100 } }),
  )
  expect(await reloader.reload()).toMatchObject({
    outcome: 'applied',
    settings: ['logging.level'],
    restart: ['server.port'],
    problems: [],
  })
  expect(running().logging.level).toBe('debug')
  expect(await reloader.reload()).toMatchObject({ outcome: 'unchanged', restart: ['server.port'] })
  expect(reloader.last()?.outcome).toBe('unchanged')
})

test('a configuration with an error changes nothing and names its problems', async () => {
  const problem = { message: '`server.port` in portolan.yaml line 2 must be …', line: 2 }
  const { reloader, running } = open(() => {
    throw new ConfigError([problem])
  })
  const before = running()
  expect(await reloader.reload()).toMatchObject({ outcome: 'refused', problems: [problem] })
  expect(running()).toBe(before)
})

test('a file that is gone or empty is refused', async () => {
  const origins = { 'logging.level': { from: 'file' as const, file: 'a.yaml' } }
  const started = { ...load({}), source: { file: '/a.yaml', origins } }
  const said = async (source: Config['source']) => {
    const reloader = createReloader({
      ...{ read: () => ({ ...load({}), source }), current: () => started },
      ...{ apply: async () => {}, clock: systemClock, log: silentLog, onReloaded: () => {} },
    })
    return (await reloader.reload()).problems.map(({ message }) => message)
  }
  expect(await said({ origins: {} })).toEqual(['The configuration file /a.yaml does not exist.'])
  expect(await said({ file: '/a.yaml', origins: {} })).toEqual([
    'The configuration file /a.yaml is empty.',
  ])
  expect(await said({ file: '/a.yaml', origins })).toEqual([])
})

test('a failure while it is applied is a refusal', async () => {
  const { reloader, running } = open(
    () => load({ logging: { level: 'debug' } }),
    () => Promise.reject(new Error('no database')),
  )
  const before = running()
  expect(await reloader.reload()).toMatchObject({
    outcome: 'refused',
    problems: [{ message: 'no database' }],
  })
  expect(running()).toBe(before)
})

test('one at a time: calls during a reload share the next one', async () => {
  let open_count = 0
  let most = 0
  let reads = 0
  const levels = ['debug', 'warn', 'error'] as const
  const { reloader, seen, running } = open(
    () => load({ logging: { level: levels[reads++]! } }),
    async () => {
      most = Math.max(most, ++open_count)
      await new Promise((resolve) => setTimeout(resolve, 5))
      open_count--
    },
  )
  const [first, second, third] = await Promise.all([
    reloader.reload(),
    reloader.reload(),
    reloader.reload(),
  ])
  expect(most).toBe(1)
  expect(second).toBe(third)
  expect(seen).toEqual([first, second])
  expect(running().logging.level).toBe('warn')
  await reloader.stop()
  expect((await reloader.reload()).problems).toEqual([{ message: 'The service is stopping.' }])
})
