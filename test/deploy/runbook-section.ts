import { read } from './expressions.ts'

const text = read('docs/runbook.md')

/** The commands of a section of the runbook, to be followed one by one. */
export type Section = {
  /** The alerts that lead to it. */
  alerts: string[]
  /** Takes the next command that begins so, with what stands for examples replaced. */
  next(begin: string, replaced?: Record<string, string>): string
  /** What was not taken yet. */
  left(): string[]
}

/** Reads a section by its heading. */
export function openSection(title: string): Section {
  const section = text.split(/^## /m).find((one) => one.startsWith(`${title}\n`))
  if (section === undefined) throw new Error(`the runbook has no section "${title}"`)
  const commands = [...section.matchAll(/^```sh\n([^`]*)^```$/gm)]
    .flatMap(([, block]) => block!.split('\n'))
    .map((line) => line.replace(/\s+#.*$/, ''))
    .filter((line) => line !== '')
  return {
    alerts: [...section.matchAll(/`(Portolan\w+)`/g)].map(([, name]) => name!),
    next(begin, replaced = {}) {
      const at = commands.findIndex((line) => line.startsWith(begin))
      if (at === -1) throw new Error(`"${title}" has no further command "${begin}"`)
      let [command = ''] = commands.splice(at, 1)
      for (const [example, value] of Object.entries(replaced)) {
        if (!command.includes(example)) throw new Error(`"${command}" has no ${example}`)
        command = command.replaceAll(example, value)
      }
      return command
    },
    left: () => [...commands],
  }
}

/** The words of a command after `portolan`. */
export const wordsOf = (command: string): string[] =>
  [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
    .map(([, single, double, plain]) => single ?? double ?? plain!)
    .slice(1)
