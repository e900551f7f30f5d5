import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { bannerFacts, bannerText } from './banner.ts'

const pair = (name: string) => ({ api_key: `plk_${name}Key`, api_secret: `pls_${name}Secret` })
const demo = { organization_id: 'the-id', admin: pair('admin'), member: pair('member') }
const app = {
  base_url: 'http://127.0.0.1:4000',
  ws_url: 'ws://127.0.0.1:4000',
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
      Probes    http://127.0.0.1:4000/health  /ready  /status  /metrics

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
      Probes    http://127.0.0.1:4000/health  /ready  /status  /metrics

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
