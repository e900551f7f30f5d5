import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createTopScreen, nodesOf, type Snapshot } from './screen.ts'

const none = { errors: 0, refused: 0 }
const at = (acme: number, globex: number): Snapshot => ({
  organizations: [
    { ...none, domain: 'acme', calls: acme },
    { ...none, domain: 'globex', calls: globex, refused: 7 },
  ],
  keys: [
    { ...none, domain: 'acme', credential_id: '0199-a', name: 'backend', calls: acme },
    { ...none, domain: 'globex', credential_id: '0199-b', name: '', calls: globex },
  ],
  methods: [
    { ...none, chain: 'c', network: 'mainnet', method: 'eth_getLogs', calls: acme },
    { ...none, chain: 'admin', network: '', method: 'ListOrganizations', calls: globex },
  ],
  nodes: [
    {
      ...none,
      name: 'c/mainnet a-node-with-a-name-that-is-long',
      state: 'healthy',
      calls: 9,
      p95_ms: 41,
    },
  ],
})

test('one snapshot has the calls of the day, fits into 80 columns and has no colour', () => {
  const text = createTopScreen({ stream: new PassThrough(), columns: () => 80, rows: 5 })(
    at(12_345, 20),
    0,
  )
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(text).toMatchInlineSnapshot(`
    "PER S  CALLS   ERRORS  LIMITED  ORGANIZATION
    -      12,345  0       0        acme
    -      20      0       7        globex

    PER S  CALLS   ERRORS  LIMITED  KEY      ORGANIZATION
    -      12,345  0       0        backend  acme
    -      20      0       0        0199-b   globex

    PER S  CALLS   ERRORS  LIMITED  METHOD             CHAIN
    -      12,345  0       0        eth_getLogs        c/mainnet
    -      20      0       0        ListOrganizations  admin

    PER S  CALLS  ERRORS  LIMITED  P95    STATE    NODE
    -      9      0       0        41 ms  healthy  c/mainnet a-node-with-a-name-that"
  `)
})

test('lists are sorted by the rate of the last seconds, and cut', () => {
  const screen = createTopScreen({ stream: new PassThrough(), columns: () => 80, rows: 1 })
  screen(at(12_345, 20), 0)
  const text = screen(at(12_350, 520), 5_000)
  expect(text).toContain('100.0  520    0       7        globex')
  expect(text).not.toContain('acme')
  // The counts of a new day.
  expect(screen(at(1, 0), 10_000)).toContain('0.0')
})

test('says why there are no nodes', () => {
  const screen = createTopScreen({ stream: new PassThrough(), columns: () => 80, rows: 5 })
  const empty = { organizations: [], keys: [], methods: [], nodes: [] }
  const text = screen({ ...empty, problem: 'No service is running here.' }, 0)
  expect(text).toContain('none')
  expect(text).toContain('Nodes are not shown: No service is running here.')
})

test('lists the nodes of every family', () => {
  const node = {
    ...{ name: 'a', state: 'healthy', requests: 3, errors: 1, latency_ms: { p50: 1, p95: 2.4 } },
  }
  const chains = {
    c: { kind: 'evm', networks: [], nodes: { mainnet: { upstreams: [node] } } },
    t: { kind: 'ton', networks: [], nodes: { mainnet: { upstreams: [node] } } },
  }
  expect(nodesOf(chains as never)).toEqual([
    { name: 'c/mainnet a', state: 'healthy', calls: 3, errors: 1, refused: 0, p95_ms: 2 },
    { name: 't/mainnet a', state: 'healthy', calls: 3, errors: 1, refused: 0, p95_ms: 2 },
  ])
})
