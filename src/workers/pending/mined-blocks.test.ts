import { expect, it } from 'vitest'
import { createMinedBlocks } from './mined-blocks.ts'

const block = (number: number, branch = 'a') => ({
  ...{ number, hash: `${branch}${number}`, parent_hash: `${branch}${number - 1}`, timestamp: 0 },
})
const blocks = (count: number, branch?: string) =>
  Array.from({ length: count }, (_, number) => block(number, branch))
const none = { removed: [], added: [], droppedAbove: undefined, isLost: false }
const transactions = (count: number) =>
  Array.from({ length: count }, (_, at) => Buffer.alloc(32, at))

const drain = (mined: ReturnType<typeof createMinedBlocks>): string[] => {
  const marks: string[] = []
  for (let mark = mined.first(); mark; mark = mined.first()) {
    marks.push(`${mark.kind} ${mark.hash}`)
    mined.shift()
  }
  return marks
}

it('of more blocks than fit, those that have left the chain stay', () => {
  const mined = createMinedBlocks()
  mined.push({ ...none, added: blocks(100) })
  mined.push({ ...none, removed: blocks(40), added: blocks(50, 'b') })
  const marks = drain(mined)
  expect(marks).toHaveLength(64)
  expect(marks[0]).toBe('added a0')
  expect(marks.filter((mark) => mark.startsWith('removed'))).toHaveLength(40)
  mined.push({ ...none, removed: blocks(100) })
  expect(drain(mined)).toHaveLength(64)
})

it('keeps the transactions of the last blocks', () => {
  const mined = createMinedBlocks()
  for (const one of blocks(65)) mined.keep(one, transactions(one.number))
  expect(mined.find('a0')).toBeUndefined()
  expect(mined.find('a1')).toEqual(transactions(1))
  expect(mined.find('a64')).toEqual(transactions(64))
  mined.forget('a64')
  expect(mined.find('a64')).toBeUndefined()
})

it('doubts the blocks that may be gone where the chain could not be linked', () => {
  const mined = createMinedBlocks()
  for (const one of blocks(3)) mined.keep(one, [])
  mined.push({ ...none, added: [block(3)] })
  mined.push({ ...none, added: [block(9, 'b')], droppedAbove: 1, isLost: true })
  expect(drain(mined)).toEqual(['added a3', 'doubted a2', 'doubted a3', 'added b9'])
})
