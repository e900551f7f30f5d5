/** A part of a line. */
export type Inline =
  | string
  | { code: string }
  | { strong: Inline[] }
  | { em: Inline[] }
  | { href: string; text: Inline[] }

/** A part of a page. */
export type Block =
  | { kind: 'heading'; level: number; id: string; text: Inline[] }
  | { kind: 'paragraph'; text: Inline[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'list'; ordered: boolean; items: Block[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'quote'; blocks: Block[] }

const fence = /^\s*```(\w*)/
const heading = /^(#{1,6})\s+(.*)$/
const bullet = /^(\s*)(?:[-*]|(\d+)\.)\s+(.*)$/
// Pictures of the console are for readers elsewhere: here its pages are one click away.
const picture = /^!\[[^\]]*\]\([^)]*\)$/
const row = /^\s*\|(.*)\|\s*$/

/**
 * Reads the Markdown that the documents of the project use: headings, paragraphs, lists, tables, quotes, code, links and
 * emphasis. The result is data: pages make elements of it, and no text becomes markup.
 */
export function parseMarkdown(source: string): Block[] {
  const lines = source.replaceAll('\r\n', '\n').split('\n')
  return parseBlocks(lines)
}

function parseBlocks(lines: readonly string[]): Block[] {
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!
    if (line.trim() === '' || picture.test(line)) {
      at++
      continue
    }
    const opened = fence.exec(line)
    if (opened) {
      const end = lines.findIndex((other, index) => index > at && /^\s*```\s*$/.test(other))
      const stop = end < 0 ? lines.length : end
      const indent = line.length - line.trimStart().length
      const text = lines.slice(at + 1, stop).map((other) => other.slice(indent))
      blocks.push({ kind: 'code', language: opened[1] ?? '', text: text.join('\n') })
      at = stop + 1
      continue
    }
    const titled = heading.exec(line)
    if (titled) {
      const text = parseInline(titled[2]!)
      blocks.push({ kind: 'heading', level: titled[1]!.length, id: idOf(plainText(text)), text })
      at++
      continue
    }
    if (row.test(line) && /^\s*\|?[\s:|-]+\|\s*$/.test(lines[at + 1] ?? '')) {
      const end = endOf(lines, at, (other) => row.test(other))
      const [head = [], , ...rows] = lines.slice(at, end).map(cellsOf)
      blocks.push({ kind: 'table', head, rows })
      at = end
      continue
    }
    if (line.startsWith('>')) {
      const end = endOf(lines, at, (other) => other.startsWith('>'))
      const inner = lines.slice(at, end).map((other) => other.replace(/^>\s?/, ''))
      blocks.push({ kind: 'quote', blocks: parseBlocks(inner) })
      at = end
      continue
    }
    if (bullet.test(line)) {
      const { list, end } = parseList(lines, at)
      blocks.push(list)
      at = end
      continue
    }
    const end = endOf(lines, at, (other) => other.trim() !== '' && !startsBlock(other))
    const text = lines.slice(at, Math.max(end, at + 1)).map((other) => other.trim())
    blocks.push({ kind: 'paragraph', text: parseInline(text.join(' ')) })
    at = Math.max(end, at + 1)
  }
  return blocks
}

const startsBlock = (line: string): boolean =>
  fence.test(line) || heading.test(line) || bullet.test(line) || row.test(line)

/** The first line from `at` on that is of another kind. */
function endOf(lines: readonly string[], at: number, fits: (line: string) => boolean): number {
  const end = lines.findIndex((line, index) => index > at && !fits(line))
  return end < 0 ? lines.length : end
}

/** A list with what is indented below its items. */
function parseList(lines: readonly string[], begin: number): { list: Block; end: number } {
  const first = bullet.exec(lines[begin]!)!
  const indent = first[1]!.length
  const items: string[][] = []
  let at = begin
  for (; at < lines.length; at++) {
    const line = lines[at]!
    const found = bullet.exec(line)
    if (found && found[1]!.length === indent) {
      items.push([found[3]!])
      continue
    }
    const next = lines[at + 1] ?? ''
    const isInside = line.trim() !== '' && line.length - line.trimStart().length > indent
    const isGap =
      line.trim() === '' && next.trim() !== '' && next.length - next.trimStart().length > indent
    if (!isInside && !isGap) break
    items.at(-1)!.push(line.slice(Math.min(indent + 2, line.length - line.trimStart().length)))
  }
  const isOrdered = first[2] !== undefined
  return {
    list: { kind: 'list', ordered: isOrdered, items: items.map((item) => parseBlocks(item)) },
    end: at,
  }
}

/** The cells of a row; a bar in code does not end one. */
function cellsOf(line: string): Inline[][] {
  const cells: string[] = []
  let cell = ''
  let isCode = false
  const text = row.exec(line)?.[1] ?? ''
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!
    if (sign === '`') isCode = !isCode
    if (sign === '|' && !isCode) {
      cells.push(cell)
      cell = ''
    } else if (sign === '\\' && text[at + 1] === '|') cell += text[++at]
    else cell += sign
  }
  return [...cells, cell].map((one) => parseInline(one.trim()))
}

const tokens =
  /`([^`]+)`|!?\[([^\]]*)\]\(([^)\s]+)\)|<(https?:\/\/[^>]+)>|\*\*((?:[^*]|\*(?!\*))+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g

/** Code, links and emphasis of a line. */
export function parseInline(text: string): Inline[] {
  const parts: Inline[] = []
  let last = 0
  for (const match of text.matchAll(tokens)) {
    if (match.index > last) parts.push(text.slice(last, match.index))
    last = match.index + match[0].length
    const [, code, label, href, bare, strong, em] = match
    if (code !== undefined) parts.push({ code })
    else if (href !== undefined) parts.push({ href, text: parseInline(label || href) })
    else if (bare !== undefined) parts.push({ href: bare, text: [bare] })
    else if (strong !== undefined) parts.push({ strong: parseInline(strong) })
    else parts.push({ em: parseInline(em!) })
  }
  if (last < text.length) parts.push(text.slice(last))
  return parts
}

/** The words alone, for searching and names. */
export const plainText = (parts: readonly Inline[]): string =>
  parts
    .map((part) => {
      if (typeof part === 'string') return part
      if ('code' in part) return part.code
      if ('strong' in part) return plainText(part.strong)
      return plainText('em' in part ? part.em : part.text)
    })
    .join('')

/** The name of a heading in addresses, as GitHub writes it. */
export const idOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
