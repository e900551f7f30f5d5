import type { OperationDoc } from './reference.ts'
import { pathTo } from './router.ts'

/** A section of a document with its words. */
export type Section = { name: string; title: string; heading: string; id: string; text: string }

/** Something that was found. */
export type Found = { to: string; kind: 'operation' | 'guide'; title: string; about: string }

const maxFound = 30

/** What has all words of a query: names and headings first, then texts. */
export function findInDocs(
  query: string,
  docs: {
    operations: readonly Pick<OperationDoc, 'key' | 'chain' | 'name' | 'summary' | 'description'>[]
    sections: readonly Section[]
  },
): Found[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const has = (text: string) => {
    const lower = text.toLowerCase()
    return words.every((word) => lower.includes(word))
  }
  const ranked: { rank: number; found: Found }[] = []
  for (const { chain, name, summary, description } of docs.operations) {
    const rank = has(name) ? 0 : has(`${chain} ${name} ${summary}`) ? 2 : has(description) ? 4 : -1
    if (rank >= 0)
      ranked.push({
        rank,
        found: {
          to: pathTo('docs', 'api', chain, name),
          kind: 'operation',
          title: name,
          about: `${chain} · ${summary}`,
        },
      })
  }
  for (const { name, title, heading, id, text } of docs.sections) {
    const rank = has(heading) ? 1 : has(`${title} ${heading} ${text}`) ? 3 : -1
    if (rank >= 0)
      ranked.push({
        rank,
        found: {
          to: `docs/guide/${name}#${id}`,
          kind: 'guide',
          title: heading,
          about:
            heading === title ? excerptOf(text, words) : `${title} · ${excerptOf(text, words)}`,
        },
      })
  }
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, maxFound)
    .map(({ found }) => found)
}

/** The text around the first word. */
function excerptOf(text: string, words: readonly string[]): string {
  const at = text.toLowerCase().indexOf(words[0] ?? '')
  const start = Math.max(0, at - 30)
  return text.slice(start, start + 120).trim()
}
