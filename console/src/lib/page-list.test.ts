import { expect, it } from 'vitest'
import { createPageList } from './page-list.ts'

const settle = () => new Promise((resolve) => setTimeout(resolve, 0))

/** A list of numbers whose tokens are the last number of a page. */
const open = (length: number, size = 100) => {
  const loads: (string | undefined)[] = []
  let fails = false
  const list = createPageList<number>({
    load: async (token) => {
      loads.push(token)
      if (fails) throw new Error('away')
      const start = token === undefined ? 0 : Number(token)
      const items = Array.from({ length: Math.min(size, length - start) }, (_, at) => start + at)
      const end = start + items.length
      return { items, next: end < length ? `${end}` : '' }
    },
    onChange: () => {},
  })
  return {
    list,
    loads,
    fail: (on: boolean) => {
      fails = on
    },
  }
}

const readAll = async (list: ReturnType<typeof open>['list']) => {
  await settle()
  while (list.hasMore()) {
    list.show(list.count() - 20, list.count())
    list.more()
    await settle()
  }
}

it('a million rows are read by key, and few are kept', async () => {
  const { list } = open(1_000_000, 1_000)
  await readAll(list)
  expect(list.count()).toBe(1_000_000)
  expect(list.kept().length).toBeLessThanOrEqual(61_000)
  expect(list.at(999_999)).toBe(999_999)
  // The first pages stay.
  expect(list.at(0)).toBe(0)
  expect(list.at(500_000)).toBeUndefined()
})

it('a page that was dropped is loaded again by its key', async () => {
  const { list, loads } = open(20_000)
  await readAll(list)
  expect(list.at(7_042)).toBeUndefined()
  loads.length = 0
  list.show(6_990, 7_050)
  await settle()
  await settle()
  expect(loads).toEqual(['6900', '7000'])
  expect([list.at(6_990), list.at(7_042)]).toEqual([6_990, 7_042])
  expect(list.kept()).toEqual(list.kept().toSorted((a, b) => a - b))
})

it('keeps rows and place when a page fails, and reads it again when asked', async () => {
  const { list, fail } = open(300)
  await settle()
  fail(true)
  list.more()
  await settle()
  expect([list.count(), list.hasMore(), String(list.error())]).toEqual([100, true, 'Error: away'])
  fail(false)
  list.more()
  await settle()
  expect([list.count(), list.error()]).toEqual([200, undefined])
})

it('reads the pages on the screen again, and the whole list at its start', async () => {
  const { list, loads } = open(1_000)
  await readAll(list)
  list.show(990, 1_000)
  expect(list.reread()).toBe(true)
  await settle()
  await settle()
  expect(loads.slice(-1)).toEqual(['900'])
  list.show(0, 20)
  expect(list.reread()).toBe(false)
})

it('asks for one page at a time', async () => {
  const { list, loads } = open(300)
  await settle()
  list.more()
  list.more()
  await settle()
  expect(loads).toEqual([undefined, '100'])
})
