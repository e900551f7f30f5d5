import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createBulkTurns } from './bulk-turns.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const open = () => {
  let time = 0
  const turns = createBulkTurns(() => time)
  const running: { name: string; end(error?: Error): void }[] = []
  const outcomes: string[] = []
  const settle = async () => {
    for (let left = 5; left > 0; left--) await turn()
  }
  /** Begins a page, which lasts until it is ended by its name. */
  const begin = async (organization_id: string, name: string, later?: AbortSignal) => {
    const page = () =>
      new Promise<void>((resolve, reject) => {
        running.push({ name, end: (error) => (error ? reject(error) : resolve()) })
      })
    turns.run(organization_id, page, later).then(
      () => outcomes.push(`${name} done`),
      (error) => outcomes.push(`${name} ${error.reason ?? error.message}`),
    )
    await settle()
  }
  const end = async (name: string, error?: Error) => {
    const at = running.findIndex((one) => one.name === name)
    running.splice(at, 1)[0]!.end(error)
    await settle()
  }
  const names = () => running.map(({ name }) => name)
  const pass = (ms: number) => {
    time += ms
  }
  return { turns, begin, end, names, outcomes, pass, settle }
}

it('does one page of an organization at a time beside others, in their order', async () => {
  const { turns, begin, end, names } = open()
  turns.note('noisy')
  turns.note('quiet')
  for (const name of ['a', 'b', 'c']) await begin('noisy', name)
  await begin('quiet', 'q')
  expect(names()).toEqual(['a', 'q'])
  await end('a', new Error('failed'))
  expect(names()).toEqual(['q', 'b'])
  await end('b')
  expect(names()).toEqual(['q', 'c'])
})

it('does all pages of an organization that is alone at once, and those that wait when the others have left', async () => {
  const { turns, begin, end, names, pass } = open()
  turns.note('noisy')
  for (const name of ['a', 'b']) await begin('noisy', name)
  expect(names()).toEqual(['a', 'b'])
  turns.note('quiet')
  for (const name of ['c', 'd', 'e']) await begin('noisy', name)
  await end('a')
  expect(names()).toEqual(['b'])
  pass(2_001)
  await end('b')
  expect(names()).toEqual(['c', 'd', 'e'])
})

it('refuses what waits for too long, and more than 200 that wait', async () => {
  const { turns, begin, end, names, outcomes, settle } = open()
  turns.note('noisy')
  turns.note('quiet')
  await begin('noisy', 'first')
  for (let number = 0; number < 200; number++) await begin('noisy', `${number}`)
  expect(outcomes).toEqual([])
  await begin('noisy', 'beyond')
  expect(outcomes).toEqual(['beyond RATE_LIMITED'])
  vi.advanceTimersByTime(5_001)
  await settle()
  expect(outcomes).toHaveLength(201)
  expect(new Set(outcomes.map((text) => text.split(' ')[1]))).toEqual(new Set(['RATE_LIMITED']))
  await begin('noisy', 'later')
  await end('first')
  expect(names()).toEqual(['later'])
})

it('refuses no later page of an operation, which ends with its signal instead', async () => {
  const { turns, begin, end, names, outcomes, settle } = open()
  turns.note('noisy')
  turns.note('quiet')
  const [kept, ended] = [new AbortController(), new AbortController()]
  await begin('noisy', 'first')
  for (let number = 0; number < 200; number++) await begin('noisy', `${number}`)
  await begin('noisy', 'kept', kept.signal)
  await begin('noisy', 'ended', ended.signal)
  vi.advanceTimersByTime(5_001)
  await settle()
  expect(outcomes).toHaveLength(200)
  ended.abort(new Error('aborted'))
  await settle()
  expect(outcomes.at(-1)).toBe('ended aborted')
  await end('first')
  expect(names()).toEqual(['kept'])
})
