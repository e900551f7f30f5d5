import { mapOf, type Node } from './node.ts'
import { shownWord } from './text.ts'

/** What a value must be, as the end of "must be …". */
export const expectation = (node: Node): string => {
  if (node.expects !== undefined) return node.expects
  if (node.const !== undefined) return shownWord(String(node.const))
  if (node.enum) return `one of ${node.enum.map((value) => shownWord(String(value))).join(', ')}`
  if (node.anyOf) return node.anyOf.map(expectation).join(', ')
  if (node.properties) return 'a section with keys'
  if (mapOf(node)) return atLeast('a section', node.minProperties, node.entry ?? 'key')
  if (node.items) return atLeast('a list', node.minItems, 'item')
  if (node.type === 'boolean') return '`true` or `false`'
  if (node.type === 'integer') return `a whole number${range(node)}`
  if (node.type === 'number') return `a number${range(node)}`
  return node.minLength === undefined ? 'a text' : 'a text that is not empty'
}

const atLeast = (what: string, count: number | undefined, part: string): string =>
  count === undefined ? `${what} of ${part}s` : `${what} of at least ${count} ${part}`

const range = ({ minimum, maximum }: Node): string => {
  // The largest safe integer says nothing to a person.
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (minimum !== undefined && most !== undefined) return ` from ${minimum} to ${most}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  return most === undefined ? '' : ` of at most ${most}`
}
