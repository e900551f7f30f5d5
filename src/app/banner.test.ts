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
                npx portolan faucet c <address>   # then watch it arrive
                npx portolan init   # to use nodes of your own

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

/** The lines that are too wide although they could be broken. */
const tooWide = (text: string, columns: number) =>
  stripVTControlCharacters(text)
    .split('\n')
    // After the title, and before the sign that a command continues.
    .filter((line) => line.length > columns && /\S /.test(line.slice(12).replace(/ \\$/, '')))

test.each([80, 120])('no line is wider than %i columns, unless it is one address', (columns) => {
  const dataDir = `/home/operator/${'nested-folder/'.repeat(4)}.data`
  const long = {
    ...app,
    base_url: 'https://portolan.eu-central-1.internal.example.com',
    dataDir,
    connectionFile: `${dataDir}/connection.json`,
  }
  const chains = [
    { chain: 'C', node: 'anvil: EVM', block: '1234567', url: 'http://127.0.0.1:8545' },
    {
      chain: 'T',
      node: 'TON executor',
      block: '-',
      url: `not running: ${'the executor did not answer in time '.repeat(3)}`,
    },
  ]
  const sign_in_url = `${app.base_url}/#sign-in=${'a'.repeat(43)}`
  for (const account of [demo, undefined])
    for (const local of [chains, []])
      for (const place of [app, long]) {
        const facts = bannerFacts(
          { ...place, database: 'embedded', demo: account },
          {
            version: '1.2.3',
            seconds: 1.2,
            configFile: `${place.dataDir}/portolan.yaml`,
            untracked: [`c/mainnet: ${'Tracking fails, and this is why. '.repeat(4)}`],
          },
        )
        const text = bannerText(facts, {
          ...{ demo: account, chains: local, sign_in_url, columns },
          flags: ` --data-dir ${place.dataDir}`,
          notice: 'Local chains are not installed; '.repeat(4),
        })
        expect(tooWide(text, columns)).toEqual([])
      }
})

test('a command that does not fit can be copied as it is', () => {
  const facts = bannerFacts(
    { ...app, database: 'embedded', demo },
    { version: '1.2.3', seconds: 1.2, configFile: undefined },
  )
  const flags = ' --data-dir /home/operator/projects/portolan-data'
  const text = stripVTControlCharacters(bannerText(facts, { demo, flags }))
  expect(text.slice(text.indexOf('  Try'), text.indexOf('  Ctrl-C'))).toMatchInlineSnapshot(`
    "  Try       curl http://127.0.0.1:4000/status
                npx portolan --data-dir /home/operator/projects/portolan-data \\
                  call admin GetOrganizationByDomain '{"domain":"demo"}'
                npx portolan call --list

    "
  `)
})

test.each([80, 120])('no event is wider than %i columns', (columns) => {
  const transfer = {
    transaction_hash: `0x${'ab'.repeat(32)}`,
    asset_type: 'ASSET_TYPE_ERC20',
    to: `0x${'2'.repeat(40)}`,
    value: '123456789012345678901234567890',
    transfer_metadata: { erc20: { symbol: 'LONGSYMBOL', decimals: 18 } },
  }
  const detail = 'the node did not answer and was replaced by another one of the network '.repeat(3)
  const lines = [
    { confirmations: 1_000, transfers: [transfer] },
    { operational_event: { event: 'tracker_stalled', detail } },
    { transaction: { transaction_state: 'TRANSACTION_STATE_WAITING_FOR_SIGNATURE' } },
  ].flatMap((data) =>
    eventLines(
      {
        ...{ kind: 'notified', chain: 'c', time: Date.parse('2026-01-01T00:01:00.250Z') },
        notification: { create_time: '2026-01-01T00:00:00.238Z', data } as never,
      },
      columns,
    ),
  )
  expect(tooWide(lines.join('\n'), columns)).toEqual([])
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
      "  hh:mm:ss  C  transfer  1.5 ETH → 0x2222…2222  0xabab…abab  1 conf  12 ms",
      "  hh:mm:ss  C  transfer  ERC20 7 → 0x2222…2222  0xabab…abab  2 conf  12 ms",
      "  hh:mm:ss  C  reorged   1.5 ETH → 0x2222…2222  0xabab…abab  0 conf  12 ms",
      "  hh:mm:ss  C  reorg     2 blocks replaced",
    ]
  `)
})
