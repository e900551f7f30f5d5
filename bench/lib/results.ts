import { readFile, writeFile } from 'node:fs/promises'
import { arch, cpus } from 'node:os'

const file = new URL('../RESULTS.md', import.meta.url)
const head = `# Figures

Written by the programs in \`bench/\`; each section names the command that makes it again. The machine has few cores and
other work on it, so trust the ratios within one run, not the absolute numbers.
`

/** Replaces the section with this title, or adds it. */
export async function writeSection(title: string, command: string, body: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => head)
  const date = new Date().toISOString().slice(0, 10)
  const machine = `${cpus().length} cores ${arch()}, Node ${process.versions.node}`
  const section = `## ${title}\n\n${date}, ${machine}. \`${command}\`\n\n${body.trim()}\n`
  const sections = text.split(/^(?=## )/m)
  const at = sections.findIndex((part) => part.startsWith(`## ${title}\n`))
  if (at < 0) sections.push(section)
  else sections[at] = section
  const whole = sections.map((part) => part.trim()).join('\n\n')
  await writeFile(file, `${whole}\n`)
  console.log(section)
}

/** A Markdown table. */
export const table = (columns: readonly string[], rows: readonly (readonly unknown[])[]): string =>
  [columns, columns.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')

/** The middle value. */
export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN
