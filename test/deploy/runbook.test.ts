import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { processShell } from '../../src/cli/shell.ts'
import { requestSchema } from '../../src/contract/operation.ts'
import { findOperation } from '../../src/contract/operations/catalogue.ts'
import { alerts, read } from './expressions.ts'

const text = read('docs/runbook.md')
const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title!)
const anchors = headings.map((title) => title.toLowerCase().replaceAll(' ', '-'))

/** The commands of the blocks, without comments and redirections. */
const commands = [...text.matchAll(/^```sh\n([^`]*)^```$/gm)]
  .flatMap(([, block]) => block!.split('\n'))
  .filter((line) => line.startsWith('portolan '))
  .map((line) => line.replace(/\s+(?:#|>).*$/, ''))

const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!)

/** The command that the words call, and the words after its name. */
const find = (command: Command, words: readonly string[]): [Command, readonly string[]] => {
  const next = command.commands.find((one) => [one.name(), ...one.aliases()].includes(words[0]!))
  return next ? find(next, words.slice(1)) : [command, words]
}

describe('the runbook', () => {
  it('has the section of every alert', () => {
    const links = alerts.map(({ annotations }) => annotations.runbook)
    const known = anchors.map((anchor) => `docs/runbook.md#${anchor}`)
    expect(links.filter((link) => !known.includes(link ?? ''))).toEqual([])
  })

  it('names every alert in its section, and only alerts that exist', () => {
    const sections = text.split(/^## /m).slice(1)
    for (const { alert, annotations } of alerts) {
      const index = anchors.indexOf(annotations.runbook!.split('#')[1]!)
      expect([alert, sections[index]!.includes(`\`${alert}\``)]).toEqual([alert, true])
    }
    const named = [...text.matchAll(/`(Portolan\w+)`/g)].map(([, name]) => name)
    const names = alerts.map(({ alert }) => alert)
    expect(named.filter((name) => !names.includes(name!))).toEqual([])
  })

  it('links to sections that exist', () => {
    const links = [...text.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor]) => anchor!)
    expect(links.filter((anchor) => !anchors.includes(anchor))).toEqual([])
  })

  it.each(commands)('has a command that exists: %s', (line) => {
    const [command, words] = find(createProgram(processShell()), wordsOf(line).slice(1))
    const all = [...command.options, ...(command.parent?.options ?? [])]
    const options = words.filter((word) => word.startsWith('--'))
    expect(options.filter((word) => !all.some(({ long }) => long === word))).toEqual([])
    const required = command.registeredArguments.filter((one) => one.required).length
    const given = words.findIndex((word) => word.startsWith('--'))
    expect(given === -1 ? words.length : given).toBeGreaterThanOrEqual(required)
    // A group alone is no command, except for `chains`.
    expect(command.commands.length > 0 && command.name() !== 'chains').toBe(false)
  })

  it.each(commands.filter((line) => line.startsWith('portolan call ')))(
    'has a request with fields that exist: %s',
    (line) => {
      const [, , chain, operation, request] = wordsOf(line)
      const entry = findOperation(chain!, operation!)!
      expect(entry).toBeDefined()
      const { properties } = requestSchema(entry.row, entry.service)
      const unknown = Object.keys(JSON.parse(request!)).filter((name) => !(name in properties))
      expect(unknown).toEqual([])
    },
  )
})
