import { expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { mergeLive } from '../reload/difference.ts'
import { createReloader } from '../reload/reload.ts'
import { createJointReload } from './joint-reload.ts'

const load = (level: Config['logging']['level']) =>
  loadConfig({ env: {}, cwd: '/', overrides: { logging: { level } } })

/** Processes with a reloader each, as a supervisor sees them. */
const open = (faults: readonly ('none' | 'refuses' | 'ends')[]) => {
  const joint = createJointReload()
  const processes = faults.map((fault, index) => {
    const slot = index + 1
    const started = load('info')
    let running = started
    let next = started
    const reloader = createReloader({
      ...{ read: () => next, current: () => running, clock: systemClock, log: silentLog },
      apply: async (after) => {
        // The last one takes the longest.
        for (let turn = 0; turn < slot * 3; turn++) await new Promise(setImmediate)
        if (fault === 'refuses') throw new ConfigError([{ message: `${slot} refuses` }])
        await joint.ready(slot)
        running = mergeLive(started, after)
      },
      onReloaded: () => {},
    })
    const plan = { name: `${slot}`, slot, roles: [], shares: 1, callers: 1 }
    const ask = async <answer>(_: string, config?: unknown) => {
      if (fault === 'ends') throw new Error('The process ended before it answered reload.')
      next = config as Config
      return (await reloader.reload()) as answer
    }
    return { plan, ask, level: () => running.logging.level }
  })
  const levels = () => processes.map(({ level }) => level())
  return { joint, processes, levels }
}

test('no process changes before all are ready', async () => {
  const { joint, processes, levels } = open(['none', 'none', 'none'])
  let atCommit: string[] = []
  await joint.run(processes, load('debug'), () => {
    atCommit = levels()
  })
  expect(atCommit).toEqual(['info', 'info', 'info'])
  expect(levels()).toEqual(['debug', 'debug', 'debug'])
})

test.each([
  [['none', 'none', 'refuses'], '3 refuses'],
  [['refuses', 'none', 'none'], '1 refuses'],
  [['none', 'ends', 'none'], 'ended before it answered'],
] as const)('one of %j leaves all as they were', async (faults, message) => {
  const { joint, processes, levels } = open(faults)
  let isCommitted = false
  const run = joint.run(processes, load('debug'), () => {
    isCommitted = true
  })
  await expect(run).rejects.toThrow(message)
  expect([levels(), isCommitted]).toEqual([['info', 'info', 'info'], false])
})

test('a process in which nothing differs is not waited for', async () => {
  const { joint, processes, levels } = open(['none', 'none'])
  await processes[0]!.ask('reload', load('info'))
  await joint.run(processes, load('info'), () => {})
  expect(levels()).toEqual(['info', 'info'])
})
