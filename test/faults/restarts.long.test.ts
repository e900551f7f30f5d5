import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { freshFolder, portolan, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { runRestarts } from './restarts.ts'

it('local chains are tracked after every restart, and no start complains of the last', async () => {
  const outcome = await runRestarts({ restarts: 3, seed: 7 })
  expect(outcome).toEqual({ restarts: { stop: 1, kill: 1, crash: 1 }, complaints: [] })
}, 600_000)

it('a chain that cannot be tracked shows everywhere', async () => {
  const dataDir = await freshFolder()
  const args = ['--chains', 'c', '--no-traffic']
  const first = await startService(dataDir, { args })
  await first.stop()
  // Another chain instead of the one that was tracked.
  await rm(join(dataDir, 'chains'), { recursive: true })
  const service = await startService(dataDir, { args })
  const { base_url, admin_url } = service.connection
  const read = async (path: string) => await fetch(new URL(path, base_url))
  const sentence = 'Tracking fails: the nodes are of another chain'
  const operator = async (path: string) => await fetch(new URL(path, admin_url))
  const status = async () => (await (await operator('/status')).json()) as Record<string, never>
  await waitFor(
    'it is recorded',
    async () => {
      const { events } = (await status()) as unknown as { events: { open: unknown[] } }
      return events.open.length > 0
    },
    { timeoutMs: 60_000, everyMs: 500 },
  )
  expect(await status()).toMatchObject({
    chains: {
      c: {
        tracking: {
          state: 'failing',
          health: 'failing',
          problem: expect.stringContaining(sentence),
        },
      },
    },
    events: { open: [{ kind: 'tracker_failing', chain: 'c', network: 'mainnet' }], resolved: [] },
  })
  const ready = await read('/ready')
  expect([ready.status, await ready.json()]).toEqual([
    200,
    {
      status: 'ready',
      degraded: [{ chain: 'c', network: 'mainnet', health: 'failing' }],
    },
  ])
  expect(await (await operator('/metrics')).text()).toContain(
    'portolan_tracker_failing{chain="c",network="mainnet"} 1',
  )
  expect(service.output()).toMatch(/"event":"tracker_failing","chain":"c","network":"mainnet"/)
  const chains = await portolan(['chains'], { dataDir })
  expect(chains.stdout).toMatch(/^c\/mainnet +failing .*Tracking fails: the nodes are of another/m)
  expect(chains.stdout).toMatch(/^c\/mainnet +tracker_failing .* now /m)
  const doctor = await portolan(['doctor'], { dataDir })
  expect(doctor.code).toBe(1)
  expect(doctor.stdout).toMatch(/✗ tracking +c mainnet since .*: Tracking fails: the nodes are/)
  await service.stop()
  // The next start shows it at once, from the recorded event.
  const next = await startService(dataDir, { args })
  await waitFor('it is ready', () => next.output().includes('"started"'), { timeoutMs: 60_000 })
  expect(next.output()).toMatch(
    /"untracked":\["c\/mainnet: Tracking fails: the nodes are of another chain/,
  )
  await next.stop()
}, 300_000)
