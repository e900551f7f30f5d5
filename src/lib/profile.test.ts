import { expect, it } from 'vitest'
import { recordProfile } from './profile.ts'

const { signal } = new AbortController()

it('a CPU profile names the running functions', async () => {
  const profile = JSON.parse(await recordProfile('cpu', { seconds: 0.05, signal }))
  expect(profile.nodes.length).toBeGreaterThan(0)
  expect(profile.samples.length).toBeGreaterThan(0)
})

it('a memory profile names the allocating functions', async () => {
  const profile = JSON.parse(await recordProfile('heap', { seconds: 0.05, signal }))
  expect(profile.head.callFrame).toBeDefined()
})

it('ends early when the caller hangs up, and another can begin', async () => {
  const caller = new AbortController()
  const recording = recordProfile('cpu', { seconds: 60, signal: caller.signal })
  caller.abort()
  await expect(recording).rejects.toThrow()
  await recordProfile('cpu', { seconds: 0.01, signal })
})
