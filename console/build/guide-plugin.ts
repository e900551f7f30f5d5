// The documents of the project as modules of the console: `virtual:guide` lists them, `virtual:guide/<name>` is one as
// data, and `virtual:guide-search` has the words of all. They are read when the console is built.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'
import { type Block, parseMarkdown, plainText } from './markdown.ts'

const root = join(import.meta.dirname, '../../docs')
const prefix = 'virtual:guide'

/** The order of those that are read first; the others follow by name. */
const order = [
  ...[
    'quick-start',
    'console',
    'signing',
    'webhooks',
    'events',
    'transactions',
    'gateway',
    'query',
  ],
  ...['operations', 'errors', 'chains', 'networks', 'ton', 'sui', 'polkadot'],
  ...['configuration', 'production', 'runbook', 'organizations', 'audit'],
]

const placeOf = (name: string): number =>
  (order.indexOf(name) + order.length + 1) % (order.length + 1)

/** The names of all documents: `webhooks`, `decisions/events`. */
export const guideNames = (): string[] =>
  globSync(['*.md', 'decisions/*.md'], { cwd: root })
    .map((file) => file.replaceAll('\\', '/').replace(/\.md$/, ''))
    .filter((name) => name !== 'decisions/README')
    .sort(
      (a, b) =>
        Number(a.includes('/')) - Number(b.includes('/')) ||
        placeOf(a) - placeOf(b) ||
        (a < b ? -1 : 1),
    )

/** One document as data. */
export const readGuide = (name: string): Block[] =>
  parseMarkdown(readFileSync(join(root, `${name}.md`), 'utf8'))

const titleOf = (name: string, blocks: readonly Block[]): string => {
  const first = blocks.find((block) => block.kind === 'heading')
  return first ? plainText(first.text) : name
}

/** A section of a document, for the search. */
type Section = { name: string; title: string; heading: string; id: string; text: string }

/** The sections of a document with their words. */
export function sectionsOf(name: string, blocks: readonly Block[]): Section[] {
  const title = titleOf(name, blocks)
  const sections: Section[] = []
  for (const block of blocks) {
    if (block.kind === 'heading')
      sections.push({ name, title, heading: plainText(block.text), id: block.id, text: '' })
    else if (sections.length > 0) sections.at(-1)!.text += ` ${wordsOf(block)}`
  }
  return sections
}

function wordsOf(block: Block): string {
  switch (block.kind) {
    case 'heading':
    case 'paragraph':
      return plainText(block.text)
    case 'code':
      return block.text
    case 'list':
      return block.items.flat().map(wordsOf).join(' ')
    case 'quote':
      return block.blocks.map(wordsOf).join(' ')
    case 'table':
      return [block.head, ...block.rows].flatMap((cells) => cells.map(plainText)).join(' ')
  }
}

/** The plugin. */
export function guidePlugin(): Plugin {
  return {
    name: 'portolan-guide',
    resolveId: (id) => (id.startsWith(prefix) ? `\0${id}` : undefined),
    load(id) {
      if (!id.startsWith(`\0${prefix}`)) return undefined
      const name = id.slice(prefix.length + 1)
      if (name === '-search')
        return `export default ${JSON.stringify(guideNames().flatMap((one) => sectionsOf(one, readGuide(one))))}`
      if (name.startsWith('/')) return `export default ${JSON.stringify(readGuide(name.slice(1)))}`
      const rows = guideNames().map((one) => {
        const title = JSON.stringify(titleOf(one, readGuide(one)))
        return `{ name: ${JSON.stringify(one)}, title: ${title}, load: () => import('${prefix}/${one}').then((page) => page.default) }`
      })
      return `export const guides = [${rows.join(',\n')}]`
    },
  }
}
