import { expect, test } from 'vitest'
import { guideNames, readGuide, sectionsOf } from './guide-plugin.ts'
import { type Block, idOf, parseInline, parseMarkdown } from './markdown.ts'

test('reads headings, paragraphs, lists, tables, quotes and code', () => {
  const source = [
    '# The `code` title',
    'Two lines of',
    'one paragraph.',
    '',
    '- one',
    '  continued',
    '  - inner',
    '- two',
    '',
    '1. first',
    '2. second',
    '',
    '| A | B |',
    '| --- | --- |',
    '| `a|b` | **bold** |',
    '| | x |',
    '',
    '> said',
    '',
    '```ts',
    'const x = "# no heading"',
    '```',
  ].join('\n')
  expect(parseMarkdown(source)).toEqual([
    { kind: 'heading', level: 1, id: 'the-code-title', text: ['The ', { code: 'code' }, ' title'] },
    { kind: 'paragraph', text: ['Two lines of one paragraph.'] },
    {
      kind: 'list',
      ordered: false,
      items: [
        [
          { kind: 'paragraph', text: ['one continued'] },
          { kind: 'list', ordered: false, items: [[{ kind: 'paragraph', text: ['inner'] }]] },
        ],
        [{ kind: 'paragraph', text: ['two'] }],
      ],
    },
    {
      kind: 'list',
      ordered: true,
      items: [[{ kind: 'paragraph', text: ['first'] }], [{ kind: 'paragraph', text: ['second'] }]],
    },
    {
      kind: 'table',
      head: [['A'], ['B']],
      rows: [
        [[{ code: 'a|b' }], [{ strong: ['bold'] }]],
        [[], ['x']],
      ],
    },
    { kind: 'quote', blocks: [{ kind: 'paragraph', text: ['said'] }] },
    { kind: 'code', language: 'ts', text: 'const x = "# no heading"' },
  ])
})

test('reads code, links and emphasis in a line', () => {
  expect(
    parseInline('See [the `x`](a.md#b), <https://a.example>, **all** and *some* of 2 * 3.'),
  ).toEqual([
    'See ',
    { href: 'a.md#b', text: ['the ', { code: 'x' }] },
    ', ',
    { href: 'https://a.example', text: ['https://a.example'] },
    ', ',
    { strong: ['all'] },
    ' and ',
    { em: ['some'] },
    ' of 2 * 3.',
  ])
  expect(idOf('What you can rely on?')).toBe('what-you-can-rely-on')
})

const guides = guideNames().map((name) => [name, readGuide(name)] as const)

test.each(guides)('%s is read whole', (_, blocks) => {
  const paragraphs = blocks.filter((block) => block.kind === 'paragraph')
  expect(blocks[0]?.kind).toBe('heading')
  // What is not understood would be a paragraph that begins with a sign.
  const strange = paragraphs.filter(({ text }) => /^(?:[|#>]|```|[-*] )/.test(String(text[0])))
  expect(strange).toEqual([])
  const columns = blocks.filter((block) => block.kind === 'table')
  for (const { head, rows } of columns as Extract<Block, { kind: 'table' }>[])
    for (const row of rows) expect([row, row.length]).toEqual([row, head.length])
})

test('a picture on a line of its own is left out', () => {
  expect(parseMarkdown('# A\n\n![alt](images/a.png)\n\nText ![x].')).toMatchObject([
    { kind: 'heading' },
    { kind: 'paragraph', text: ['Text ![x].'] },
  ])
})

test('every link between documents leads to a page and a section', () => {
  const ids = new Map(
    guides.map(([name, blocks]) => [name, sectionsOf(name, blocks).map(({ id }) => id)]),
  )
  const dead = guides.flatMap(([name, blocks]) =>
    [...JSON.stringify(blocks).matchAll(/"href":"((?!https?:)[^"]*\.md)(?:#([^"]*))?"/g)]
      .filter(([, file]) => !file!.startsWith('../') || name.includes('/'))
      .filter(([, file, id]) => {
        const url = new URL(file!, `https://x.example/${name}`).pathname
          .slice(1)
          .replace(/\.md$/, '')
        if (url === 'decisions/README' || url.startsWith('README')) return false
        const found = ids.get(url)
        return !found || (id !== undefined && !found.includes(id))
      })
      .map(([link]) => `${name}: ${link}`),
  )
  expect(dead).toEqual([])
})
