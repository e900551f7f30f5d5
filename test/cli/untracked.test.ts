import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { freshFolder, runCommand, startService } from './portolan.ts'

// The same with nodes of another chain, in place of those that were tracked: `test/faults/restarts.long.test.ts`.
test('a network that cannot be tracked shows everywhere', async () => {
  const dataDir = join(await freshFolder(), 'data')
  // No node answers there.
  const env = {
    PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL: 'http://127.0.0.1:9',
    PORTOLAN_LOGGING__FORMAT: 'json',
  }
  const service = await startService(dataDir, { env })
  const { base_url, admin_url } = service.connection
  const read = async (path: string, from = base_url) => await fetch(new URL(path, from))
  const status = async () => await (await read('/status', admin_url)).json()
  await waitFor('it is recorded', async () => (await status()).events.open.length > 0, {
    timeoutMs: 60_000,
    everyMs: 200,
  })

  const problem = expect.stringMatching(/^Tracking fails: /)
  const tracking = { health: 'failing', problem }
  const event = { kind: 'tracker_failing', chain: 'c', network: 'mainnet' }
  expect(await status()).toMatchObject({
    chains: { c: { tracking } },
    events: { open: [event], resolved: [] },
  })
  const ready = await read('/ready')
  expect([ready.status, await ready.json()]).toEqual([
    200,
    { status: 'ready', degraded: [{ chain: 'c', network: 'mainnet', health: 'failing' }] },
  ])
  expect(await (await read('/metrics', admin_url)).text()).toContain(
    'portolan_tracker_failing{chain="c",network="mainnet"} 1',
  )
  expect(service.output()).toMatch(/"event":"tracker_failing","chain":"c","network":"mainnet"/)
  const chains = await runCommand(['chains'], { dataDir })
  expect(chains.stdout).toMatch(/^c\/mainnet +failing .*Tracking fails: /m)
  expect(chains.stdout).toMatch(/^c\/mainnet +tracker_failing .* now /m)
  const doctor = await runCommand(['doctor'], { dataDir })
  expect(doctor.code).toBe(1)
  expect(doctor.stdout).toMatch(/✗ tracking +c mainnet since .*: Tracking fails: /)
  await service.stop()

  // The next start shows it at once, from the recorded event.
  const next = await startService(dataDir, { env })
  await waitFor('it is ready', () => next.output().includes('"started"'))
  expect(next.output()).toMatch(/"untracked":\["c\/mainnet: Tracking fails: /)
  await next.stop()
}, 120_000)
