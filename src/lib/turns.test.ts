import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const createRun = () => {
  const turns = createTurns({ perClient: 2, perTurn: 3 })
  const acted: string[] = []
  const run = (client: string, name: string) => turns.run(client, () => acted.push(name))
  return { ...turns, run, acted }
}

test('a client that causes much at once waits, and others do not', async () => {
  const { run, acted, waiting } = createRun()
  for (let number = 1; number <= 9; number++) run('noisy', `n${number}`)
  expect(acted).toEqual(['n1', 'n2'])
  run('quiet', 'q1')
  expect(acted).toEqual(['n1', 'n2', 'q1'])
  expect(waiting()).toBe(7)
  await turn()
  expect(acted).toEqual(['n1', 'n2', 'q1', 'n3', 'n4', 'n5'])
  for (let left = 5; left > 0; left--) await turn()
  expect(acted.slice(3)).toEqual(['n3', 'n4', 'n5', 'n6', 'n7', 'n8', 'n9'])
  expect(waiting()).toBe(0)
})

test('those that wait take turns', async () => {
  const { run, acted } = createRun()
  for (let number = 1; number <= 6; number++) run('a', `a${number}`)
  for (let number = 1; number <= 4; number++) run('b', `b${number}`)
  for (let left = 5; left > 0; left--) await turn()
  expect(acted).toEqual(['a1', 'a2', 'b1', 'b2', 'a3', 'b3', 'a4', 'b4', 'a5', 'a6'])
})

test('after a turn a client acts at once again', async () => {
  const { run, acted } = createRun()
  for (const name of ['1', '2']) run('a', name)
  await turn()
  await turn()
  for (const name of ['3', '4', '5']) run('a', name)
  expect(acted).toEqual(['1', '2', '3', '4'])
})

test('work that costs more takes more of a turn, and each turn does something', async () => {
  const turns = createTurns({ perClient: 100, perTurn: 100 })
  const acted: string[] = []
  const run = (client: string, name: string, cost: number) =>
    turns.run(client, () => acted.push(name), cost)
  for (const name of ['a1', 'a2', 'a3', 'a4']) run('a', name, 40)
  run('b', 'b1', 40)
  run('b', 'b2', 500)
  run('b', 'b3', 1)
  expect(acted).toEqual(['a1', 'a2', 'b1'])
  const later: string[] = []
  while (turns.waiting() > 0) {
    await turn()
    later.push(acted.splice(0).join())
  }
  expect(later).toEqual(['a1,a2,b1,a3', 'b2', 'a4,b3'])
})
