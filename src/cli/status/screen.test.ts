import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createScreen, type ShownStatus } from './screen.ts'

const tracking = {
  ...{ network: 'mainnet', state: 'leading', health: 'ok', problem: '', gaps: [] },
  ...{ block_number: 1_000, head: 61_000 },
}
const status: ShownStatus = {
  ...{ version: '1.2.3', uptime_seconds: 60 },
  database: { mode: 'embedded', reachable: true, schema_version: '0001-x' },
  webhooks: { waiting: 3, name: 'x' },
  events: {
    open: [
      {
        ...{
          chain: 'c',
          network: 'mainnet',
          kind: 'gap',
          detail: 'blocks 7 to 9 are pruned'.repeat(9),
        },
        create_time: '2026-11-16T10:00:00.000Z',
      },
    ],
  },
  chains: {
    c: {
      ...{ default_network: 'mainnet', networks: ['mainnet'] },
      nodes: { mainnet: { upstreams: [{ state: 'healthy' }, { state: 'unreachable' }] } },
      tracking,
    },
  },
}

test('fits into 80 columns, without colour where no terminal shows it', () => {
  const text = createScreen({ stream: new PassThrough(), columns: () => 80 })(status, 0)
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(text).not.toContain('\u001b')
  expect(text).toMatchInlineSnapshot(`
    "Portolan 1.2.3, up 60 s, database embedded reachable
    Webhooks: waiting 3

    CHAIN      STATE    BLOCK  PROGRESS       NODES  GAPS
    c/mainnet  leading  1,000  60,000 behind  1/2    0

    Problems:
    2026-11-16T10:00:00.000Z  c/mainnet  gap: blocks 7 to 9 are prunedblocks 7 to 9
    are prunedblocks 7 to 9 are prunedblocks 7 to 9 are prunedblocks 7 to 9 are
    prunedblocks 7 to 9 are prunedblocks 7 to 9 are prunedblocks 7 to 9 are
    prunedblocks 7 to 9 are pruned"
  `)
})

test('shows the speed of catching up and the time that is left', () => {
  const screen = createScreen({ stream: new PassThrough(), columns: () => 80 })
  screen(status, 0)
  const next = {
    ...status,
    chains: { c: { ...status.chains.c!, tracking: { ...tracking, block_number: 2_000 } } },
  }
  expect(screen(next, 2_000)).toContain('59,000 behind, 500.0/s, 2 min left')
  const done = {
    ...status,
    chains: { c: { ...status.chains.c!, tracking: { ...tracking, block_number: 61_000 } } },
  }
  expect(screen(done, 4_000)).toContain('at the head')
})
