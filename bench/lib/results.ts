import { readFile, writeFile } from 'node:fs/promises'
import { arch, cpus } from 'node:os'
import { stolenTicks } from '../../test/helpers/stolen-cpu.ts'

const file = new URL('../RESULTS.md', import.meta.url)
const head = `# Figures

Written by the programs in \`bench/\`; each section names the command that makes it again. The machine has few cores and
other work on it, so trust the ratios within one run, not the absolute numbers.
`

const [began, stolenBefore] = [performance.now(), stolenTicks()]

/** What the hypervisor withheld since the program began: figures of a run with more than 1 or 2 % are not to be trusted. */
const withheld = (): string => {
  const seconds = ((performance.now() - began) / 1_000) * cpus().length
  const percent = (stolenTicks() - stolenBefore) / seconds
  return percent < 0.1 ? '' : `, ${percent.toFixed(1)} % of the CPU withheld by the hypervisor`
}

/** Replaces the section with this title, or adds it. */
export async function writeSection(title: string, command: string, body: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => head)
  const date = new Date().toISOString().slice(0, 10)
  const machine = `${cpus().length} cores ${arch()}, Node ${process.versions.node}${withheld()}`
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
