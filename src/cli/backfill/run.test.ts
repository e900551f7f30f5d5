import { Readable, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createBackfillProgress } from './run.ts'

const progressOn = (isTTY: boolean) => {
  const written: string[] = []
  const stderr = Object.assign(
    new Writable({ write: (chunk, _, done) => done(void written.push(String(chunk))) }),
    { isTTY },
  )
  let time = 0
  const shell = {
    env: {},
    cwd: '/',
    stdin: Readable.from([]),
    stdout: new Writable(),
    stderr,
    setExitCode: () => {},
  }
  const progress = createBackfillProgress(shell, () => time)
  const reportAt = (ms: number, block_number: number) => {
    time = ms
    progress.report({ from: 1_001, to: 11_000, block_number, transfers: 1_234 })
  }
  return { written, reportAt, done: progress.done }
}

test('moves one line with a bar and the time that is left on a terminal', () => {
  const { written, reportAt, done } = progressOn(true)
  reportAt(0, 2_000)
  reportAt(10_000, 6_000)
  done()
  expect(written).toEqual([
    '\r\u001b[2K[#...........] 10 %, block 2,000 of 11,000, 1,234 transfers, 0 blocks/s, unknown left',
    '\r\u001b[2K[######......] 50 %, block 6,000 of 11,000, 1,234 transfers, 400 blocks/s, 13 s left',
    '\r\u001b[2K',
  ])
})

test('writes a line occasionally elsewhere, with longer times as people say them', () => {
  const { written, reportAt, done } = progressOn(false)
  for (const [ms, block] of [
    [0, 1_001],
    [4_000, 1_002],
    [5_000, 1_003],
    [400_000, 1_401],
    [40_000_000, 11_000],
  ] as const)
    reportAt(ms, block)
  done()
  expect(written.map((line) => line.replace(/.*blocks\/s, /, ''))).toEqual([
    '6 h 56 min left\n',
    '2 h 39 min left\n',
    '0 s left\n',
  ])
})
