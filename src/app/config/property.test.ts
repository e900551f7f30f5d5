import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc, { type Arbitrary } from 'fast-check'
import { expect, it } from 'vitest'
import { stringify } from 'yaml'
import { leafFault } from './complete.ts'
import { printConfig } from './describe.ts'
import { loadConfig } from './load.ts'
import { isRequired, leavesOf, mapLeaves, mapOf, type Node, rootNode } from './node.ts'
import type { Overrides } from './schema.ts'
import { loadText, sentencesOf, temporaryFolder } from './testing/fixture.ts'

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('yes', '1e3', 'null', '# x', '- a', '0x1'),
)

const references = ['env:NAME', 'file:/run/secrets/x', 'file:/with space/ä: #']

const leaf = (node: Node): Arbitrary<unknown> => {
  if (node.const !== undefined) return fc.constant(node.const)
  if (node.enum) return fc.constantFrom(...node.enum)
  if (node.anyOf) return fc.oneof(...node.anyOf.map(leaf))
  if (node.type === 'boolean') return fc.boolean()
  if (node.type === 'integer')
    return fc.integer({
      min: node.minimum ?? -1e6,
      max: Math.min(node.maximum ?? 1e6, 2 ** 31 - 1),
    })
  if (node.type === 'number') return fc.integer().map((value) => value / 8)
  if (node.secret) return fc.constantFrom(...references)
  if (node.path) return text.map((value) => `/${value}`)
  if (node.pattern?.includes('://') && node.example !== undefined)
    return fc.constant(String(node.example))
  return node.pattern ? fc.stringMatching(new RegExp(node.pattern)) : text
}

const valid = (node: Node): Arbitrary<unknown> => {
  const map = mapOf(node)
  if (map)
    return fc.dictionary(
      fc.stringMatching(new RegExp(map.pattern), { maxLength: 20 }),
      valid(map.entry),
      {
        minKeys: node.minProperties ?? 0,
        maxKeys: 3,
        noNullPrototype: true,
      },
    )
  if (node.items)
    return fc.array(valid(node.items), { minLength: node.minItems ?? 0, maxLength: 3 })
  if (!node.properties) return leaf(node).filter((value) => leafFault(node, value) === undefined)
  const entries = Object.entries(node.properties)
  return fc.record(Object.fromEntries(entries.map(([name, child]) => [name, valid(child)])), {
    requiredKeys: entries.map(([name]) => name).filter((name) => isRequired(node, name)),
    noNullPrototype: true,
  })
}

// The rules between keys are not in the schema.
const obeyRules = (value: unknown): Overrides => {
  const settings = value as Overrides
  type Chain = {
    default_network?: string | undefined
    variant?: string
    variants?: string[]
    networks?: Record<
      string,
      {
        verification?: string
        global_config?: string
        upstreams?: { transport?: string; kind?: string; key?: string; url?: string }[]
      }
    >
  }
  const chains = (settings.chains ?? {}) as Record<string, Chain | undefined>
  for (const chain of Object.values(chains)) {
    if (!chain) continue
    chain.default_network = Object.keys(chain.networks ?? {})[0]
    // Whether `record_pending` is known depends on them.
    delete chain.variant
    delete chain.variants
  }
  for (const network of Object.values(chains.s?.networks ?? {}))
    for (const upstream of network?.upstreams ?? []) upstream.transport = 'grpc-web'
  for (const network of Object.values(chains.t?.networks ?? {})) {
    if (!network) continue
    delete network.verification
    if (!network.upstreams?.length) network.global_config ??= '/ton/global.config.json'
    for (const upstream of network.upstreams ?? []) {
      delete upstream.kind
      delete upstream.key
      if (upstream.url) upstream.url = upstream.url.replace(/^tcp:/, 'http:')
    }
  }
  if (settings.server) settings.server.header_timeout_seconds = 1
  if (settings.webhooks?.allowed_networks)
    settings.webhooks.allowed_networks = ['10.20.0.0/16', 'fd00:20::/32']
  return settings
}

const overrides = valid(rootNode).map(obeyRules)

it('any valid configuration survives printing and loading', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'printed.yaml')
  fc.assert(
    fc.property(overrides, (given) => {
      const { source, ...settings } = loadConfig({ env: {}, cwd: folder.path, overrides: given })
      writeFileSync(file, printConfig({ ...settings, source }))
      const { source: _, ...again } = loadConfig({ file, env: {}, cwd: '/elsewhere' })
      expect(again).toEqual(settings)
    }),
    { numRuns: 30 },
  )
}, 60_000)

it('a printed literal secret is gone, and is refused when it is loaded', () => {
  fc.assert(
    fc.property(overrides, (given) => {
      let hidden = 0
      const literal = mapLeaves(rootNode, given, ({ node, value }) => {
        if (!node.secret) return value
        hidden++
        if (node.mask === undefined) return 'topsecret'
        const scheme = /\(\?:([a-z]+)\|/.exec(node.pattern?.replace('^(?:', '') ?? '')?.[1]
        return `${scheme}://user:topsecret@host/topsecret`.replace(
          node.mask === 'path' ? '' : '/topsecret',
          '',
        )
      }) as Overrides
      const printed = printConfig(loadConfig({ env: {}, cwd: '/', overrides: literal }))
      expect(printed).not.toContain('topsecret')
      expect(sentencesOf(() => loadText(printed))).toHaveLength(hidden)
    }),
    { numRuns: 20 },
  )
}, 60_000)

const knownKeys = [
  'server',
  'port',
  'chains',
  'c',
  'networks',
  'mainnet',
  'upstreams',
  'url',
  'headers',
  '__proto__',
  'constructor',
]
const scrap = fc.constantFrom(
  'server',
  ':',
  ' ',
  '\n',
  '- ',
  '{',
  '}',
  '[',
  ']',
  '"',
  "'",
  '#',
  '&a ',
  '*a',
  '!x ',
  '? ',
  '|',
  '>',
  '---',
  '\t',
  '1',
  ',',
  '%',
  '@',
  '`',
  '\u0000',
  '\ufeff',
  'ä',
)
const tree = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.jsonValue(),
    tie('record'),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
  record: fc.dictionary(fc.oneof(fc.constantFrom(...knownKeys), fc.string()), tie('value'), {
    maxKeys: 4,
  }),
}))

it('any text loads or is refused with sentences, never with another error', () => {
  const anyText = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(scrap, { maxLength: 40 }).map((parts) => parts.join('')),
    tree.record.map((value) => stringify(value)),
    tree.record.map((value) =>
      stringify({ chains: { c: { networks: { mainnet: value } } }, server: value }),
    ),
  )
  fc.assert(
    fc.property(anyText, (value) => {
      for (const sentence of sentencesOf(() => loadText(value))) {
        expect(sentence).toMatch(/\.$|\?$/)
        expect(sentence).not.toMatch(/[\p{Cc}]/u)
      }
    }),
    { numRuns: 150 },
  )
}, 60_000)

it('any environment loads or is refused with sentences', () => {
  const name = fc
    .array(
      fc.constantFrom(
        'SERVER',
        'PORT',
        'CHAINS',
        'C',
        'NETWORKS',
        'X',
        'UPSTREAMS',
        '0',
        '1',
        'URL',
        'DATABASE',
        'EMBEDDED',
        'SETTINGS',
        '',
        '_',
      ),
      { maxLength: 8 },
    )
    .map((parts) => `PORTOLAN_${parts.join('__')}`)
  fc.assert(
    fc.property(fc.dictionary(name, text), (env) => {
      sentencesOf(() => loadConfig({ env, cwd: '/' }))
    }),
    { numRuns: 100 },
  )
}, 60_000)

it('leavesOf sees every key of a configuration', () => {
  const config = loadConfig({ env: {}, cwd: '/' })
  expect(leavesOf(rootNode, config).map(({ path }) => path.join('.'))).toContain('server.port')
})
