import { expect, it } from 'vitest'
import { NodeFault } from './fault.ts'

it('what a node says can be stored, whatever it is', () => {
  const { message } = new NodeFault('failed', `a\u0000b\n${'\ud83d\ude00'.repeat(1_000)}`)
  expect(message).toMatch(/^a b /)
  expect(message.isWellFormed() && message.length <= 500).toBe(true)
})
