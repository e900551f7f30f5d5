import { readFileSync } from 'node:fs'
import { Check } from 'typebox/schema'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { configJsonSchema, configMarkdown, exampleYaml } from './describe.ts'
import { isContainer, isRequired, mapOf, type Node, rootNode } from './node.ts'
import { loadText, sentencesOf } from './testing/fixture.ts'

type Key = { name: string; node: Node; parent: Node }

function* keysOf(parent: Node): Generator<Key> {
  for (const [name, node] of Object.entries(parent.properties ?? {})) {
    yield { name, node, parent }
    yield* keysOf(node)
  }
  const map = mapOf(parent)
  if (map) yield* keysOf(map.entry)
  if (parent.items) yield* keysOf(parent.items)
}

const keys = [...keysOf(rootNode)]

it('the schema describes every key, and says what happens without it', () => {
  const silent = keys.filter(({ name, node, parent }) => {
    const explained = node.default !== undefined || node.unset !== undefined
    const complete = explained || isContainer(node) || isRequired(parent, name)
    return (
      !complete || !/^[a-z][a-z0-9_]*$/.test(name) || !/^[A-Z`].*\.$/.test(node.description ?? '')
    )
  })
  expect(silent.map(({ name }) => name)).toEqual([])
})

describe('the example', () => {
  const file = new URL('../../../portolan.example.yaml', import.meta.url)

  it('is committed as it is generated', () => {
    expect(readFileSync(file, 'utf8')).toBe(exampleYaml())
  })

  it('loads unchanged, and contains only defaults outside of the chains', () => {
    const { source: _, chains, ...settings } = loadText(exampleYaml())
    const { source: __, chains: ___, ...defaults } = loadText('')
    expect(settings).toEqual(defaults)
    expect(Object.keys(chains)).toEqual(['c', 'q', 't', 's', 'p'])
  })

  it('loads with every example turned on', () => {
    const text = exampleYaml().replaceAll(/^( *)#(?=[a-z_]+:| {2}[a-z_]+:)/gm, '$1')
    expect(sentencesOf(() => loadText(text))).toEqual([])
    expect(loadText(text).chains.c?.networks.mainnet?.upstreams[0]).toMatchInlineSnapshot(`
      {
        "archive": true,
        "headers": {
          "authorization": "env:NODE_AUTHORIZATION",
        },
        "name": "own-node",
        "priority": 0,
        "rate_limit_per_second": 25,
        "url": "http://127.0.0.1:8545",
      }
    `)
  })

  it('names every key', () => {
    for (const { name } of keys)
      expect(exampleYaml()).toMatch(new RegExp(`^ *#?(- )?${name}:`, 'm'))
  })
})

describe('the JSON Schema', () => {
  const schema = configJsonSchema()

  it('accepts the example and an empty file', () => {
    expect(Check(schema, parse(exampleYaml()))).toBe(true)
    expect(Check(schema, {})).toBe(true)
  })

  it.each([
    ['an unknown key', { sever: {} }],
    ['a wrong type', { server: { port: 'x' } }],
    ['a wrong family', { chains: { t: { kind: 'evm', networks: {} } } }],
    ['a missing address', { chains: { c: { networks: { mainnet: { upstreams: [{}] } } } } }],
    [
      'a network in upper case',
      { chains: { c: { networks: { Main: { upstreams: [{ url: 'http://a' }] } } } } },
    ],
  ])('refuses %s', (_, value) => {
    expect(Check(schema, value)).toBe(false)
  })

  it('is plain JSON without notes of ours', () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema)
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(JSON.stringify(schema)).not.toMatch(
      /"(?:unset|expects|secret|mask|entry|path|example)":/,
    )
  })
})

describe('the documentation', () => {
  it('has a row for every key', () => {
    for (const { name } of keys)
      expect(configMarkdown()).toMatch(new RegExp(`^(\\| \`|## \`)(.*\\.)?${name}\``, 'm'))
  })

  it('has tables of equal width', () => {
    const rows = configMarkdown()
      .split('\n')
      .filter((line) => line.startsWith('|'))
    const widths = rows.map((row) => row.match(/(?<!\\)\|/g)?.length)
    expect(new Set(widths)).toEqual(new Set([3, 4]))
    expect(configMarkdown()).toContain('| `server.port` | `4000` | Port to listen on;')
  })
})
