import type { Command } from 'commander'
import { catalogue } from '../../contract/operations/catalogue.ts'

/** A word that may come next, and what it means. */
export type Word = { word: string; meaning: string }

/** What may come after each sequence of words; the key is the words, joined by spaces. */
export type Words = ReadonlyMap<string, readonly Word[]>

/** All that can be completed: the tree of commands, and the operations for `call`. */
export function wordsOf(program: Command): Words {
  const words = new Map<string, readonly Word[]>()
  const visit = (command: Command, path: string): void => {
    const own = command.commands.flatMap((child) => [
      ...(child.name() === 'help' ? [] : [wordOf(child.name(), child.summary(), child)]),
    ])
    const options = [...command.options, ...(command === program ? [] : program.options)]
    const flags = options.flatMap(({ long, description }) =>
      long === '--version' && command !== program
        ? []
        : [{ word: long ?? '', meaning: description }],
    )
    const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? [])
    words.set(path, [
      ...own,
      ...choices.map((word) => ({ word, meaning: '' })),
      ...flags,
      { word: '--help', meaning: 'explain the command' },
    ])
    for (const child of command.commands) visit(child, `${path} ${child.name()}`.trim())
  }
  visit(program, '')
  addOperations(words)
  return words
}

const wordOf = (word: string, summary: string, command: Command): Word => ({
  word,
  meaning: summary || command.description(),
})

function addOperations(words: Map<string, readonly Word[]>): void {
  const services = Map.groupBy(catalogue, ({ service }) => service)
  const call = words.get('call') ?? []
  const names = [...services.keys()].map((word) => ({ word, meaning: 'service' }))
  words.set('call', [...names, ...call])
  for (const [service, entries] of services)
    words.set(`call ${service}`, [
      ...entries.map(({ name, row }) => ({ word: name, meaning: row.summary })),
      ...call,
    ])
}
