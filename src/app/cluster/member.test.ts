import { expect, it } from 'vitest'
import { processFlags } from './member.ts'

it('processes that serve requests have short collections, those that only follow chains the default', () => {
  const short = '--max-semi-space-size=8'
  expect(processFlags(['api', 'gateway', 'console'])).toContain(short)
  expect(processFlags(['gateway', 'tracker'])).toContain(short)
  expect(processFlags(['tracker', 'courier', 'sender'])).not.toContain(short)
})
