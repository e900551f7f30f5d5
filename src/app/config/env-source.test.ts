import { describe, expect, it } from 'vitest'
import { loadConfig } from './load.ts'
import { loadText, sentencesOf } from './testing/fixture.ts'

const load = (env: Record<string, string>) => loadConfig({ env, cwd: '/' })
const node = 'PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS'

describe('variables', () => {
  it('have short forms, which the full name goes before', () => {
    const env = {
      PORTOLAN_DATA_DIR: '/data',
      PORTOLAN_PORT: '0',
      DATABASE_URL: 'postgres://db/portolan',
      REDIS_URL: 'redis://redis',
    }
    const config = load(env)
    expect([config.data_dir, config.server.port, config.database.url, config.redis.url]).toEqual([
      '/data',
      0,
      'postgres://db/portolan',
      'redis://redis',
    ])
    expect(load({ ...env, PORTOLAN_SERVER__PORT: '5' }).server.port).toBe(5)
  })

  it('are read by the type of their key', () => {
    const config = load({
      PORTOLAN_SERVER__TRUST_PROXY: '1',
      PORTOLAN_LIMITS__PER_DAY_LIMIT: '-1',
      PORTOLAN_REDIS__KEY_PREFIX: '12',
      PORTOLAN_DATABASE__EMBEDDED__SETTINGS: '{work_mem: 8MB, max_connections: 20}',
      PORTOLAN_DATABASE__EMBEDDED__SETTINGS__MAX_CONNECTIONS: '30',
    })
    expect(config.server.trust_proxy).toBe(1)
    expect(load({ PORTOLAN_SERVER__TRUST_PROXY: 'true' }).server.trust_proxy).toBe(true)
    expect(
      load({ PORTOLAN_SERVER__TRUST_PROXY: '[10.0.0.0/8, "fd00::/8"]' }).server.trust_proxy,
    ).toEqual(['10.0.0.0/8', 'fd00::/8'])
    expect(config.limits.per_day_limit).toBe(-1)
    expect(config.redis.key_prefix).toBe('12')
    expect(config.database.embedded.settings).toEqual({ work_mem: '8MB', max_connections: '30' })
  })

  it('reach into maps and lists', () => {
    const config = load({
      [`${node}__0__URL`]: 'http://a',
      [`${node}__0__HEADERS__X_API_KEY`]: 'env:A',
      [`${node}__1`]: '{url: ws://b, priority: 1}',
      PORTOLAN_CHAINS__C__NETWORKS__TEST_NET__UPSTREAMS: '[{"url": "http://c"}]',
    })
    expect(config.chains.c?.networks).toMatchInlineSnapshot(`
      {
        "mainnet": {
          "multicall": "0xca11bde05977b3631167028862be2a173976ca11",
          "proof": "root",
          "unproven_types": [],
          "upstreams": [
            {
              "headers": {
                "x-api-key": "env:A",
              },
              "priority": 0,
              "url": "http://a",
            },
            {
              "headers": {},
              "priority": 1,
              "url": "ws://b",
            },
          ],
          "verify_senders": true,
        },
        "test-net": {
          "multicall": "0xca11bde05977b3631167028862be2a173976ca11",
          "proof": "root",
          "unproven_types": [],
          "upstreams": [
            {
              "headers": {},
              "priority": 0,
              "url": "http://c",
            },
          ],
          "verify_senders": true,
        },
      }
    `)
  })

  it('change one node of a file', () => {
    const text =
      'chains: {c: {networks: {mainnet: {upstreams: [{url: http://a}, {url: http://b}]}}}}'
    const config = loadText(text, { env: { [`${node}__1__URL`]: 'http://c' } })
    const urls = config.chains.c?.networks.mainnet?.upstreams.map(({ url }) => url)
    expect(urls).toEqual(['http://a', 'http://c'])
  })

  it('count as not set when they are empty', () => {
    expect(load({ PORTOLAN_PORT: '', PORTOLAN_CONFIG: '', DATABASE_URL: '' }).server.port).toBe(
      4000,
    )
  })

  it('are refused when they are unknown, malformed or out of order', () => {
    const env = {
      PORTOLAN_PROT: '1',
      PORTOLAN_SERVER__PRT: '1',
      PORTOLAN_SERVER__PORT__X: '1',
      PORTOLAN_WHATEVER_ELSE: '1',
      PORTOLAN_PORT: '1e3',
      PORTOLAN_SERVER__TRUST_PROXY: 'yes',
      PORTOLAN_DATABASE__EMBEDDED: '{',
      [`${node}__1__URL`]: 'http://a',
    }
    expect(sentencesOf(() => load(env))).toMatchInlineSnapshot(`
      [
        "The variable \`PORTOLAN_DATABASE__EMBEDDED\` line 1: Flow map must end with a }.",
        "Unknown variable \`PORTOLAN_PROT\`. Did you mean \`PORTOLAN_PORT\`?",
        "Unknown variable \`PORTOLAN_SERVER__PORT__X\`. Did you mean \`PORTOLAN_SERVER__PORT\`?",
        "Unknown variable \`PORTOLAN_SERVER__PRT\`. Did you mean \`PORTOLAN_SERVER__PORT\`?",
        "Unknown variable \`PORTOLAN_WHATEVER_ELSE\`. Names follow the keys: \`PORTOLAN_SERVER__PORT\` sets \`server.port\`.",
        "\`chains.c.networks.mainnet.upstreams[1].url\` in the variable \`PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__1__URL\` leaves out the items before it in the list.",
        "\`server.port\` in the variable \`PORTOLAN_PORT\` must be a whole number from 0 to 65535; it is \`1e3\`.",
        "\`server.trust_proxy\` in the variable \`PORTOLAN_SERVER__TRUST_PROXY\` must be \`true\`, \`false\`, a whole number from 0 to 10, or a list of networks; it is \`yes\`.",
        "\`chains.c.networks.mainnet.upstreams\` must be a list of at least 1 item; it is an empty list.",
      ]
    `)
  })

  it('may have any name that a secret refers to', () => {
    const text = 'security: {master_key: env:PORTOLAN_MASTER_KEY}'
    const env = { PORTOLAN_MASTER_KEY: 'x' }
    expect(sentencesOf(() => loadText(text, { env }))).toEqual([])
    expect(sentencesOf(() => load(env))).toHaveLength(1)
    const both = { DATABASE_URL: 'env:PORTOLAN_DB', PORTOLAN_DB: 'postgres://db/portolan' }
    expect(load(both).database.url).toBe('env:PORTOLAN_DB')
  })

  it('of Kubernetes are left alone', () => {
    const env = {
      PORTOLAN_SERVICE_HOST: '10.0.0.1',
      PORTOLAN_SERVICE_PORT: '4000',
      PORTOLAN_SERVICE_PORT_HTTP: '4000',
      PORTOLAN_PORT: 'tcp://10.0.0.1:4000',
      PORTOLAN_PORT_4000_TCP: 'tcp://10.0.0.1:4000',
      PORTOLAN_PORT_4000_TCP_ADDR: '10.0.0.1',
      PORTOLAN_GATEWAY_SERVICE_HOST: '10.0.0.2',
      PORTOLAN_GATEWAY_PORT: 'tcp://10.0.0.2:4000',
    }
    expect(load(env).server.port).toBe(4000)
  })

  it('of the command line are known', () => {
    expect(load({ PORTOLAN_API_KEY: 'k', PORTOLAN_API_SECRET: 's' }).server.port).toBe(4000)
  })
})
