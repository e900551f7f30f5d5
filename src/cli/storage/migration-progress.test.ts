import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createMigrationProgress } from './migration-progress.ts'

const terminal = () => {
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
  let text = ''
  stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  let time = 0
  const progress = createMigrationProgress({ stderr, env: {} }, () => time)
  return {
    ...progress,
    at: (ms: number) => {
      time = ms
    },
    last: () => text.split('\r\u001b[2K').at(-1),
  }
}

test('shows the steps with rate and time left', () => {
  const { report, at, last, done } = terminal()
  report({ name: '0018-a', step: 0, steps: 4 })
  at(2_000)
  report({ name: '0019-b', step: 1, steps: 4 })
  expect(last()).toBe('[###.........] 25 %, 0.5 steps/s, 6 s left, step 2/4 0019-b')
  done()
  expect(last()).toBe('')
})

test('shows the phases of an index build, within 80 columns', () => {
  const { report, at, last } = terminal()
  const step = { name: '0020-transfer-size', step: 0, steps: 1 }
  const build = { index: 'transfer_size', phase: 'building index: scanning table', total: 90_000 }
  report({ ...step, build: { ...build, phase: 'starting', done: 0, total: 0 } })
  at(1_000)
  report({ ...step, build: { ...build, done: 0 } })
  expect(last()).toBe(
    '[............] 0 %, 0.0 units/s, unknown left, step 1/1 0020-transfer-size: tra',
  )
  at(11_000)
  report({ ...step, build: { ...build, done: 30_000 } })
  expect(last()).toBe(
    '[####........] 33 %, 3,000 units/s, 20 s left, step 1/1 0020-transfer-size: tra',
  )
  at(12_000)
  report({ ...step, build: { ...build, phase: 'waiting for old snapshots', done: 0, total: 0 } })
  expect(last()).toBe('step 1/1 0020-transfer-size: transfer_size, waiting for old snapshots')
})
