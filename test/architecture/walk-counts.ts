import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Writes the lines of the files into the walks of docs/architecture.md.

const root = join(import.meta.dirname, '../..')
const document = join(root, 'docs/architecture.md')
const walk = /^(\*\*[^*]+\*\*): \d+ files, \d+ lines\.\n\n((?:\|.*\n)+)/gm

const counted = readFileSync(document, 'utf8').replace(
  walk,
  (_all, title: string, table: string) => {
    const counts: number[] = []
    const rows = table.replace(
      /^(\| \d+ \| `([^`]+)` \|) \d+ \|/gm,
      (_row, start: string, file: string) => {
        const lines = readFileSync(join(root, 'src', file), 'utf8').split('\n').length - 1
        counts.push(lines)
        return `${start} ${lines} |`
      },
    )
    const sum = counts.reduce((total, lines) => total + lines, 0)
    return `${title}: ${counts.length} files, ${sum} lines.\n\n${rows}`
  },
)
writeFileSync(document, counted)
