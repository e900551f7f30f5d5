import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { urlProblem } from './answers.ts'
import { initYaml } from './yaml.ts'

test('the file says what was found, and what was not', () => {
  const text = initYaml({
    chains: {
      c: [
        { url: 'http://127.0.0.1:8545', chain_id: 31337 },
        { url: 'ws://127.0.0.1:8546', problem: 'connect ECONNREFUSED\n127.0.0.1:8546' },
      ],
      t: [{ url: 'http://127.0.0.1:8081/api/v2' }],
      p: [{ url: 'ws://127.0.0.1:9944', chain_id: `0x${'68'.repeat(32)}` }],
    },
    database: 'env:DATABASE_URL',
  })
  expect(text).toMatchInlineSnapshot(`
    "# Configuration of Portolan. "portolan config example" shows every key with its default,
    # "portolan config check" finds mistakes in this file, "portolan doctor" asks the nodes again.
    #
    # An address or a secret may also be file:/path or env:NAME, so that it need not stand here.

    server:
      # Listen on 0.0.0.0 behind a proxy that brings TLS.
      host: 127.0.0.1
      port: 4000

    database:
      url: env:DATABASE_URL

    # Several nodes of a network help each other out: list as many as you have.
    chains:
      # C: wallets and gateway on an EVM chain
      c:
        kind: evm
        networks:
          mainnet:
            # A node of another chain is never used.
            chain_id: 31337
            upstreams:
              - url: http://127.0.0.1:8545
              - url: ws://127.0.0.1:8546  # did not answer: connect ECONNREFUSED 127.0.0.1:8546

      # T: wallets on TON
      t:
        kind: ton
        networks:
          mainnet:
            upstreams:
              - url: http://127.0.0.1:8081/api/v2

      # P: wallets on Polkadot Asset Hub
      p:
        kind: polkadot
        networks:
          mainnet:
            # A node of another chain is never used.
            chain_id: "0x6868686868686868686868686868686868686868686868686868686868686868"
            upstreams:
              - url: ws://127.0.0.1:9944
    "
  `)
  expect(parse(text).chains.p.networks.mainnet.chain_id).toBe(`0x${'68'.repeat(32)}`)
})

test('without a database server it says that one is embedded', () => {
  expect(parse(initYaml({ chains: {} })).database).toBeNull()
})

test.each([
  ['c', 'http://127.0.0.1:8545', undefined],
  ['c', 'wss://node.example/key', undefined],
  ['t', 'ws://127.0.0.1:8081', /begin with http:\/\/, https:\/\//],
  ['p', 'http://127.0.0.1:9944', /begin with ws:\/\/, wss:\/\//],
  ['s', 'localhost:9000', /begin with http/],
] as const)('%s at %s', (tag, url, problem) => {
  if (problem) expect(urlProblem(tag, url)).toMatch(problem)
  else expect(urlProblem(tag, url)).toBeUndefined()
})
