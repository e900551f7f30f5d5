import { expect, it } from 'vitest'
import { parseYaml } from './file-source.ts'
import { sentencesOf } from './testing/fixture.ts'

const bomb = [
  'a: &a [x, x, x, x, x, x, x, x]',
  ...['b', 'c', 'd', 'e', 'f'].map((name, index) => {
    const alias = `*${'abcde'[index]}`
    return `${name}: &${name} [${Array(8).fill(alias).join(', ')}]`
  }),
].join('\n')

const faults: Record<string, string> = {
  'a key that is there twice': 'a: 1\nb: 2\na: 3',
  'a tab': 'a:\n\tb: 1',
  'two documents': 'a: 1\n---\nb: 1',
  'an alias bomb': bomb,
  'an alias of itself': 'a: &a {b: *a}',
  'an alias of nothing': 'a: *b',
  depth: '['.repeat(100_000),
  'less depth': `${'['.repeat(100)}${']'.repeat(100)}`,
  'a key that is a list': '? [a]\n: 1',
  'a tag': 'a: !!binary AAAA',
  'an open quote': 'a: "b',
  'wrong indentation': 'a:\n  b: 1\n c: 2',
}

it('refuses invalid input with clear messages', () => {
  const sentences = Object.entries(faults).map(([name, text]) => [
    name,
    ...sentencesOf(() => parseYaml(text, 'f.yaml')),
  ])
  expect(sentences).toMatchInlineSnapshot(`
    [
      [
        "a key that is there twice",
        "f.yaml line 3: this key is there twice in one section. Keep one of them.",
      ],
      [
        "a tab",
        "f.yaml line 2: a tab cannot indent YAML. Use spaces.",
      ],
      [
        "two documents",
        "f.yaml line 2: a second document starts here. A configuration is one document, without \`---\` inside.",
      ],
      [
        "an alias bomb",
        "f.yaml repeats itself through aliases more than 100 times. Write the values out.",
      ],
      [
        "an alias of itself",
        "f.yaml is nested deeper than 64 levels.",
      ],
      [
        "an alias of nothing",
        "f.yaml uses the alias \`*b\`, which is not set above it.",
      ],
      [
        "depth",
        "f.yaml is nested deeper than 64 levels.",
      ],
      [
        "less depth",
        "f.yaml is nested deeper than 64 levels.",
      ],
      [
        "a key that is a list",
        "f.yaml line 1: a key must be plain text.",
      ],
      [
        "a tag",
        "f.yaml line 1: Unresolved tag: tag:yaml.org,2002:binary.",
      ],
      [
        "an open quote",
        "f.yaml line 1: Missing closing "quote.",
      ],
      [
        "wrong indentation",
        "f.yaml line 3: All mapping items must start at the same column.",
      ],
    ]
  `)
})

it('knows where things are, through aliases and lists', () => {
  const { value, locate } = parseYaml('x: &a\n  y: [1, {z: 2}]\nw: *a\n', 'f.yaml')
  expect(value).toEqual({ x: { y: [1, { z: 2 }] }, w: { y: [1, { z: 2 }] } })
  expect(locate(['w', 'y', 1, 'z'])).toEqual({ line: 2, column: 11 })
  expect(locate(['x', 'y', 1])).toEqual({ line: 2, column: 10 })
  expect(locate(['x', 'missing'])).toEqual({ line: 1, column: 1 })
  expect(locate([])).toBeUndefined()
})
