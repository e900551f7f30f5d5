import pg from 'pg'
import { ArchiveError, type Partition } from './format.ts'

const { escapeIdentifier, escapeLiteral } = pg

// These words come from a file and go into statements, so they must be what a server prints.
const literal = String.raw`(?:'(?:[^'\\]|'')*'|-?\d+(?:\.\d+)?|MINVALUE|MAXVALUE|NULL|true|false)`
const list = String.raw`\(${literal}(?:, ${literal})*\)`
const boundPattern = new RegExp(
  String.raw`^(?:DEFAULT|FOR VALUES (?:FROM ${list} TO ${list}|IN ${list}|WITH \(modulus \d+, remainder \d+\)))$`,
)
const keyPattern = /^(?:RANGE|LIST|HASH) \([a-z0-9_", ]+\)$/
const optionPattern = /^([a-z_.]+)=(.*)$/s

const renderOptions = (options: string[]): string => {
  const settings = options.map((option) => {
    const [, name, value] = optionPattern.exec(option) ?? []
    if (name === undefined || value === undefined) {
      throw new ArchiveError(`The archive has a storage option that no server prints: ${option}`)
    }
    return `${name} = ${escapeLiteral(value)}`
  })
  return settings.length > 0 ? ` with (${settings.join(', ')})` : ''
}

/** The statement that creates a partition as it was. */
export const createPartitionStatement = (partition: Partition): string => {
  const { name, parent, bound, options, key } = partition
  // Both are spliced into a statement; a crafted archive must not run anything else.
  if (!boundPattern.test(bound) || (key !== null && !keyPattern.test(key))) {
    throw new ArchiveError(`The archive has a partition bound that no server prints: ${bound}`)
  }
  const by = key === null ? '' : ` partition by ${key}`
  return `create table ${escapeIdentifier(name)} partition of ${escapeIdentifier(parent)} ${bound}${by}${renderOptions(options)}`
}
