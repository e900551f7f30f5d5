import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkConfig, loadConfig } from './load.ts'
import { resolveChains } from './resolve.ts'
import { loadText, sentencesOf, temporaryFolder } from './testing/fixture.ts'

const key = 'n4VDnSCUuSpjnCyUk9e3QOOd6o0ItSWYbTnW3Wnn8wk='
const otherKey = 'aF91CuUHuuOv9rm2W5+O/4h38M3sRm40DtSdRxQhmtQ='
const server = (ip: number, port: number, text = key) => ({
  ...{ ip, port, provided: 'someone' },
  id: { '@type': 'pub.ed25519', key: text },
})
const hash = (byte: number) => Buffer.alloc(32, byte)
const init_block = {
  ...{ workchain: -1, shard: -(2 ** 63), seqno: 46894135 },
  root_hash: hash(0x7e).toString('base64'),
  file_hash: hash(0xf1).toString('base64'),
}
const globalConfig = {
  '@type': 'config.global',
  dht: { '@type': 'dht.config.global' },
  liteservers: [server(84478511, 19949), server(-2018135749, 53312, otherKey)],
  validator: { '@type': 'validator.config.global', init_block },
}
const trusted = `46894135:${'7e'.repeat(32)}:${'f1'.repeat(32)}`

/** The network that a configuration with this file gives, and what `config check` says of it. */
const load = (file: unknown, network = 'global_config: global.config.json') => {
  using folder = temporaryFolder()
  const text = typeof file === 'string' ? file : JSON.stringify(file)
  if (file !== undefined) writeFileSync(join(folder.path, 'global.config.json'), text)
  writeFileSync(
    join(folder.path, 'portolan.yaml'),
    `chains: {t: {networks: {mainnet: {${network}}}}}`,
  )
  const options = { env: { LITE: `lite.example:53312:${otherKey}` }, cwd: folder.path }
  const problems = checkConfig(options).map(({ message }) => message)
  const read = () => resolveChains(loadConfig(options), options.env).chains.t?.networks.mainnet
  return problems.length > 0
    ? { problems, thrown: sentencesOf(read) }
    : { problems, network: read() }
}

it('lite servers and the trusted key block come from a global config', () => {
  expect(load(globalConfig)).toEqual({
    problems: [],
    network: {
      verification: 'structural',
      trusted_key_block: trusted,
      upstreams: [
        {
          ...{ url: 'tcp://5.9.10.47:19949', kind: 'liteserver', key },
          ...{ headers: {}, priority: 0, v3: false },
        },
        {
          ...{ url: 'tcp://135.181.177.59:53312', kind: 'liteserver', key: otherKey },
          ...{ headers: {}, priority: 0, v3: false },
        },
      ],
    },
  })
})

it('nodes and the key block of the configuration come first', () => {
  const own = `1:${'11'.repeat(32)}:${'22'.repeat(32)}`
  const { network } = load(
    globalConfig,
    `verification: full, trusted_key_block: "${own}", global_config: global.config.json, upstreams: [{url: "env:LITE", kind: liteserver}, {url: "[::1]:4:${key}", kind: liteserver}]`,
  )
  expect(network).toMatchObject({ trusted_key_block: own, verification: 'full' })
  expect(network?.upstreams.map(({ url }) => url)).toEqual([
    'tcp://lite.example:53312',
    'tcp://[::1]:4',
    'tcp://5.9.10.47:19949',
    'tcp://135.181.177.59:53312',
  ])
})

it.each([
  ['a missing file', undefined, /global_config` is .* but it cannot be read \(ENOENT\)\.$/],
  ['no JSON', '{', /but it is no JSON\.$/],
  ['no lite servers', { validator: {} }, /but it names no `liteservers`\.$/],
  ['an empty list', { liteservers: [] }, /but it names no `liteservers`\.$/],
  ['a port of nothing', { liteservers: [server(1, 2), server(1, 0)] }, /`liteservers\[1\]` has no/],
  ['an ip that is none', { liteservers: [server(2 ** 32, 1)] }, /`liteservers\[0\]` has no/],
  ['a short key', { liteservers: [server(1, 1, 'AAAA')] }, /`liteservers\[0\]` has no/],
  [
    'a key block of a shard',
    { ...globalConfig, validator: { init_block: { ...init_block, workchain: 0 } } },
    /`validator.init_block` is not the name of a masterchain block/,
  ],
])('a global config with %s is refused', (_, file, expected) => {
  const { problems, thrown } = load(file)
  expect(problems).toHaveLength(1)
  expect(problems[0]).toMatch(expected)
  expect(thrown).toEqual(problems)
})

it.each([
  ['chain_id: -239', /upstreams`.* must have at least 1 item where there is no `global_config`/],
  [`upstreams: [{url: "a:1:${key}"}]`, /a lite server needs `kind: liteserver`/],
  ['upstreams: [{url: "a:1:short", kind: liteserver}]', /or is `host:port:key` of a lite server/],
  ['upstreams: [{url: "tcp://a:1", kind: liteserver}]', /key`.* must be given/],
])('%s is refused', (network, expected) => {
  const text = `chains: {t: {networks: {mainnet: {${network}}}}}`
  expect(sentencesOf(() => loadText(text)).join()).toMatch(expected)
})
