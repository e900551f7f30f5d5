import { describe, expect, it } from 'vitest'
import type { ConfigError } from './problem.ts'
import { loadText, oneChain, sentencesOf } from './testing/fixture.ts'

describe('problems', () => {
  it('come all at once, each with its place and the key that was meant', () => {
    const text = `sever:
  port: 1
server:
  prot: 1
  port: abc
  host: 1
port: 3
server.port: 4
logging: {level: loud, format: }
limits: 5
database: {pool_size: 0, embedded: {settings: {Bad Name: 1, work_mem: [1]}}}
chains:
  x: 1
  c:
    prefx: eth
    networks:
      Main: {}
      dev:
        upstreams:
          - url: ftp://secret@node
            priorty: 1
            headers: topsecret
          - name: a b
          - text
  t: {kind: evm, networks: {}}
  p: {networks: {mainnet: {upstreams: [{url: 'http://node'}]}}}
`
    expect(sentencesOf(() => loadText(text))).toMatchInlineSnapshot(`
      [
        "Unknown key \`sever.port\` in portolan.yaml line 2. Did you mean \`server.port\`?",
        "Unknown key \`port\` in portolan.yaml line 7. Did you mean \`server.port\`?",
        "Unknown key \`server.port\` in portolan.yaml line 8. Write \`port\` on a line of its own below \`server:\`.",
        "Unknown key \`server.prot\` in portolan.yaml line 4. Did you mean \`server.port\`?",
        "\`server.host\` in portolan.yaml line 6 must be a host name or an IP address, in quotes; it is \`1\`.",
        "\`server.port\` in portolan.yaml line 5 must be a whole number from 0 to 65535; it is \`abc\`.",
        "\`database.pool_size\` in portolan.yaml line 11 must be a whole number from 1 to 1000; it is \`0\`.",
        "\`database.embedded.settings.Bad Name\` in portolan.yaml line 11 must have a name that matches \`^[a-z][a-z0-9_.]*$\`.",
        "\`database.embedded.settings.work_mem\` in portolan.yaml line 11 must be a text, a number, \`true\` or \`false\`; it is a list.",
        "\`limits\` in portolan.yaml line 10 must be a section with keys; it is \`5\`.",
        "\`logging.level\` in portolan.yaml line 9 must be one of \`silent\`, \`fatal\`, \`error\`, \`warn\`, \`info\`, \`debug\`, \`trace\`; it is \`loud\`.",
        "Unknown key \`chains.c.prefx\` in portolan.yaml line 15. Did you mean \`chains.c.prefix\`?",
        "\`chains.c.networks.Main\` in portolan.yaml line 17 must have a name that matches \`^[a-z0-9]+(?:-[a-z0-9]+)*$\`.",
        "Unknown key \`chains.c.networks.dev.upstreams[0].priorty\` in portolan.yaml line 21. Did you mean \`chains.c.networks.dev.upstreams[0].priority\`?",
        "\`chains.c.networks.dev.upstreams[0].url\` in portolan.yaml line 20 must be an address that starts with \`http://\` or \`https://\` or \`ws://\` or \`wss://\`, or a \`file:\` or \`env:\` reference.",
        "\`chains.c.networks.dev.upstreams[0].headers\` in portolan.yaml line 22 must be a section of headers.",
        "\`chains.c.networks.dev.upstreams[1].url\` in portolan.yaml line 23 must be given: an address that starts with \`http://\` or \`https://\` or \`ws://\` or \`wss://\`, or a \`file:\` or \`env:\` reference.",
        "\`chains.c.networks.dev.upstreams[1].name\` in portolan.yaml line 23 must be letters, digits, \`.\`, \`_\` and \`-\`, at most 63 characters; it is \`a b\`.",
        "\`chains.c.networks.dev.upstreams[2]\` in portolan.yaml line 24 must be a section with keys.",
        "\`chains.t.kind\` in portolan.yaml line 25 must be \`ton\`; it is \`evm\`.",
        "\`chains.t.networks\` in portolan.yaml line 25 must be a section of at least 1 network; it is an empty section.",
        "\`chains.p.networks.mainnet.upstreams[0].url\` in portolan.yaml line 26 must be an address that starts with \`ws://\` or \`wss://\`, or a \`file:\` or \`env:\` reference.",
        "\`chains.x\` in portolan.yaml line 13 must be a section with keys; it is \`1\`.",
      ]
    `)
  })

  it('carry line and column as data', () => {
    try {
      loadText('\nserver:\n  prot: 1\n')
      expect.unreachable()
    } catch (error) {
      expect((error as ConfigError).problems).toMatchInlineSnapshot(`
        [
          {
            "column": 3,
            "file": "portolan.yaml",
            "key": "server.prot",
            "line": 3,
            "message": "Unknown key \`server.prot\` in portolan.yaml line 3. Did you mean \`server.port\`?",
          },
        ]
      `)
    }
  })

  it('show nothing of a secret', () => {
    const text = `
database: {url: 'mysql://u:topsecret@h/d'}
redis: {url: [topsecret]}
security: {master_key: {topsecret: topsecret}}
`
    const env = { PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL: 'topsecret' }
    const message = sentencesOf(() => loadText(text, { env })).join('\n')
    expect(message.split('\n')).toHaveLength(4)
    expect(message).not.toContain('topsecret')
  })

  it('cover rules between keys', () => {
    const text = `server: {header_timeout_seconds: 60}\n${oneChain.replace('mainnet', 'dev')}`
    expect(sentencesOf(() => loadText(text))).toMatchInlineSnapshot(`
      [
        "\`server.header_timeout_seconds\` in portolan.yaml line 1 must be at most server.request_timeout_seconds, which is 30; it is \`60\`.",
        "\`chains.c.default_network\` in portolan.yaml line 4 must be one of the networks of the chain (\`dev\`); it is \`mainnet\`.",
      ]
    `)
  })

  it('refuse a part of a URL that gRPC does not send, and print no token', () => {
    const text = (url: string, more = '') =>
      `chains: {s: {networks: {mainnet: {upstreams: [{url: "${url}"${more}}]}}}}`
    const refused = sentencesOf(() => loadText(text('https://sui.example.org/topsecret')))
    expect(refused).toMatchInlineSnapshot(`
      [
        "\`chains.s.networks.mainnet.upstreams[0].url\` in portolan.yaml line 1 must have no path with native gRPC, and no query: send a token with \`headers\`, or use \`transport: grpc-web\` for a path.",
      ]
    `)
    expect(sentencesOf(() => loadText(text('https://sui.example.org/?key=topsecret')))).toEqual(
      refused,
    )
    const web = text('https://sui.example.org/topsecret', ', transport: grpc-web')
    expect(sentencesOf(() => loadText(web))).toEqual([])
  })

  it('never let a printed mask in as a secret', () => {
    const text = 'security: {master_key: "********"}\nredis: {url: "redis://:********@host"}'
    expect(sentencesOf(() => loadText(text))).toHaveLength(2)
  })

  it('treat __proto__ as an unknown key', () => {
    const text = '__proto__: {port: 1}\nserver: {__proto__: {port: 1}, constructor: 1}'
    expect(sentencesOf(() => loadText(text))).toHaveLength(3)
    expect(({} as Record<string, unknown>).port).toBeUndefined()
  })

  it('refuse a file that is not a section, whatever else is given', () => {
    expect(
      sentencesOf(() => loadText('- 1', { overrides: { server: { port: 1 } } })),
    ).toMatchInlineSnapshot(`
      [
        "The configuration in portolan.yaml must be a section with keys; it is a list.",
      ]
    `)
  })
})
