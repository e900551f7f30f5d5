import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { bannerFacts, bannerText } from './banner.ts'
import { eventLines } from './embedded/event-line.ts'

const pair = (name: string) => ({ api_key: `plk_${name}Key`, api_secret: `pls_${name}Secret` })
const demo = { organization_id: 'the-id', admin: pair('admin'), member: pair('member') }
const app = {
  base_url: 'http://127.0.0.1:4000',
  ws_url: 'ws://127.0.0.1:4000',
  admin_url: 'http://127.0.0.1:4001',
  dataDir: '/data',
  connectionFile: '/data/connection.json',
}

test('the embedded mode', () => {
  const facts = bannerFacts(
    { ...app, database: 'embedded', demo },
    { version: '1.2.3', seconds: 1.234, configFile: undefined },
  )
  expect(facts).toEqual({
    version: '1.2.3',
    ready_seconds: 1.23,
    base_url: 'http://127.0.0.1:4000',
    ws_url: 'ws://127.0.0.1:4000',
    admin_url: 'http://127.0.0.1:4001',
    docs_url: 'http://127.0.0.1:4000/docs',
    openapi_url: 'http://127.0.0.1:4000/openapi.json',
    database: 'embedded',
    data_dir: '/data',
    connection_file: '/data/connection.json',
    organization_id: 'the-id',
  })
  const text = stripVTControlCharacters(bannerText(facts, { demo }))
  expect(text).toMatchInlineSnapshot(`
    "
      Portolan 1.2.3   ready in 1.2 s

      API       http://127.0.0.1:4000/v1/{service}/{Operation}
      Docs      http://127.0.0.1:4000/docs
      Probes    http://127.0.0.1:4000/health  /ready  /status
      Operator  http://127.0.0.1:4001/status  /metrics

      Config    none: everything is embedded
      Database  embedded PostgreSQL
      Data      /data

      Account   organization "demo", key plk_admi…
                keys and secrets are in /data/connection.json

      Try       curl http://127.0.0.1:4000/status
                npx portolan call admin GetOrganizationByDomain '{"domain":"demo"}'
                npx portolan call --list

      Ctrl-C stops the service and keeps the data.
    "
  `)
  for (const { api_key, api_secret } of [demo.admin, demo.member])
    for (const secret of [api_key, api_secret]) {
      expect(text).not.toContain(secret)
      expect(JSON.stringify(facts)).not.toContain(secret)
    }
})

test('a configuration and a database of the operator', () => {
  const facts = bannerFacts(
    { ...app, database: 'server', demo: undefined },
    { version: '1.2.3', seconds: 0.5, configFile: '/etc/portolan.yaml' },
  )
  const text = bannerText(facts, { demo: undefined, flags: ' --config /etc/portolan.yaml' })
  expect(stripVTControlCharacters(text)).toMatchInlineSnapshot(`
    "
      Portolan 1.2.3   ready in 0.5 s

      API       http://127.0.0.1:4000/v1/{service}/{Operation}
      Docs      http://127.0.0.1:4000/docs
      Probes    http://127.0.0.1:4000/health  /ready  /status
      Operator  http://127.0.0.1:4001/status  /metrics

      Config    /etc/portolan.yaml
      Database  PostgreSQL of the configuration
      Data      /data

      Try       curl http://127.0.0.1:4000/status
                npx portolan --config /etc/portolan.yaml organizations list
                npx portolan call --list

      Ctrl-C stops the service and keeps the data.
    "
  `)
})

test('the local chains, and what to do with them', () => {
  const facts = bannerFacts(
    { ...app, database: 'embedded', demo },
    {
      ...{ version: '1.2.3', seconds: 6.5, configFile: undefined },
      notRunning: { t: 'no executor here' },
    },
  )
  expect(facts).toMatchObject({ not_running: { t: 'no executor here' } })
  const chains = [
    { chain: 'C', node: 'anvil: EVM', block: '42', url: 'http://127.0.0.1:8545' },
    { chain: 'T', node: 'TON executor', block: '-', url: 'not running: no executor here' },
  ]
  const text = stripVTControlCharacters(bannerText(facts, { demo, chains }))
  expect(text).toMatchInlineSnapshot(`
    "
      Portolan 1.2.3   ready in 6.5 s

      API       http://127.0.0.1:4000/v1/{service}/{Operation}
      Docs      http://127.0.0.1:4000/docs
      Probes    http://127.0.0.1:4000/health  /ready  /status
      Operator  http://127.0.0.1:4001/status  /metrics

      Chain     Node                         Block   Its own address
      C         anvil: EVM                      42   http://127.0.0.1:8545
      T         TON executor                     -   not running: no executor here

      Config    none: everything is embedded
      Database  embedded PostgreSQL
      Data      /data

      Account   organization "demo", key plk_admi…
                keys and secrets are in /data/connection.json

      Try       npx portolan call c ListWallets
                npx portolan faucet c <address>     then watch it arrive
                npx portolan init                  to use nodes of your own

      Ctrl-C stops the service and keeps the data.
    "
  `)
})

test('networks that are not tracked', () => {
  const untracked = ['c/mainnet: Tracking fails: the nodes are of another chain.']
  const facts = bannerFacts(
    { ...app, database: 'server', demo: undefined },
    { version: '1.2.3', seconds: 0.5, configFile: '/etc/portolan.yaml', untracked },
  )
  expect(facts).toMatchObject({ untracked })
  const text = stripVTControlCharacters(bannerText(facts, { demo: undefined }))
  expect(text).toContain(
    '\n  Not tracked: c/mainnet: Tracking fails: the nodes are of another chain.\n\n  Config ',
  )
})

test('local chains that are not installed', () => {
  const facts = bannerFacts(
    { ...app, database: 'embedded', demo: undefined },
    { version: '1.2.3', seconds: 0.5, configFile: undefined },
  )
  const notice = 'Local chains are not installed; use others.'
  const text = stripVTControlCharacters(bannerText(facts, { demo: undefined, notice }))
  expect(text).toContain(`\n  ${notice}\n\n  Config `)
})

test('events are lines', () => {
  const time = Date.parse('2026-01-01T00:00:00.250Z')
  const transfer = {
    wallet_id: 'w',
    transaction_hash: `0x${'ab'.repeat(32)}`,
    asset_type: 'ASSET_TYPE_C',
    from: `0x${'1'.repeat(40)}`,
    to: `0x${'2'.repeat(40)}`,
    value: '1500000000000000000',
    transfer_state: 'TRANSFER_STATE_CONFIRMED',
  }
  const notified = (transfers: object[], confirmations: number) =>
    eventLines({
      kind: 'notified',
      chain: 'c',
      time,
      notification: {
        create_time: '2026-01-01T00:00:00.238Z',
        data: { confirmations, transfers },
      } as never,
    })
  const lines = [
    ...notified([transfer], 1),
    ...notified([{ ...transfer, asset_type: 'ASSET_TYPE_ERC20', value: '7' }], 2),
    ...notified([{ ...transfer, transfer_state: 'TRANSFER_STATE_REORGED' }], 0),
    ...eventLines({ kind: 'reorganized', depth: 2, time }),
  ].map((line) => stripVTControlCharacters(line).replace(/\d\d:\d\d:\d\d/, 'hh:mm:ss'))
  expect(lines).toMatchInlineSnapshot(`
    [
      "  hh:mm:ss  C  transfer    1.5 ETH  to 0x222222…2222  in 0xababab…abab  1 confirmation  webhook in 12 ms",
      "  hh:mm:ss  C  transfer    ERC20 7  to 0x222222…2222  in 0xababab…abab  2 confirmations  webhook in 12 ms",
      "  hh:mm:ss  C  reorged     1.5 ETH  to 0x222222…2222  in 0xababab…abab  0 confirmations  webhook in 12 ms",
      "  hh:mm:ss  C  reorganize  2 blocks replaced",
    ]
  `)
})
