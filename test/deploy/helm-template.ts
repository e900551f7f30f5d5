// Renders the templates of the chart where there is no `helm`: the parts of Go's templates and of Helm's functions that the
// chart uses, and an error for every other. Where there is one, `chart.test.ts` compares both.

import { createHash } from 'node:crypto'
import { stringify } from 'yaml'

type Value = unknown
type Scope = { dot: Value; root: Value; variables: Map<string, Value> }
type Node =
  | { kind: 'text'; text: string }
  | { kind: 'action'; code: string }
  | { kind: 'block'; word: string; code: string; body: Node[]; other: Node[] }

/** Renders a template with the definitions of the chart. */
export function renderTemplate(text: string, definitions: string, values: object): string {
  const named = new Map<string, Node[]>()
  for (const node of parse(definitions))
    if (node.kind === 'block' && node.word === 'define')
      named.set(node.code.replaceAll('"', ''), node.body)
  return renderAll(parse(text), { dot: values, root: values, variables: new Map() }, named)
}

function parse(text: string): Node[] {
  const trimmed = text.replaceAll(/\s*\{\{-/g, '{{').replaceAll(/-\}\}\s*/g, '}}')
  const tokens = trimmed.split(/(\{\{[\s\S]*?\}\})/)
  const root: Node[] = []
  const stack: { list: Node[]; node?: Node & { kind: 'block' } }[] = [{ list: root }]
  for (const token of tokens) {
    const top = stack.at(-1)!
    const code = /^\{\{\s*([\s\S]*?)\s*\}\}$/.exec(token)?.[1]
    if (code === undefined) {
      if (token !== '') top.list.push({ kind: 'text', text: token })
      continue
    }
    const [word = ''] = code.split(/\s/)
    if (['if', 'with', 'range', 'define'].includes(word)) {
      const node = { kind: 'block' as const, word, code: code.slice(word.length).trim() }
      const made = { ...node, body: [] as Node[], other: [] as Node[] }
      top.list.push(made)
      stack.push({ list: made.body, node: made })
    } else if (word === 'else') top.list = top.node!.other
    else if (word === 'end') stack.pop()
    else top.list.push({ kind: 'action', code })
  }
  if (stack.length !== 1) throw new Error('a block is not closed')
  return root
}

const renderAll = (nodes: readonly Node[], scope: Scope, named: Map<string, Node[]>): string =>
  nodes.map((node) => render(node, scope, named)).join('')

function render(node: Node, scope: Scope, named: Map<string, Node[]>): string {
  if (node.kind === 'text') return node.text
  const look = (code: string) => evaluate(code, scope, named)
  if (node.kind === 'action') {
    const [, name, code] = /^\$(\w+)\s*:=\s*(.*)$/s.exec(node.code) ?? []
    if (name === undefined) return textOf(look(node.code))
    scope.variables.set(name, look(code!))
    return ''
  }
  const inner = (dot: Value, variables: [string, Value][] = []): Scope => ({
    ...scope,
    dot,
    variables: new Map([...scope.variables, ...variables]),
  })
  if (node.word === 'define') return ''
  if (node.word === 'range') {
    const [, names = '', code = ''] = /^(?:(\$[\w$, ]+?)\s*:=\s*)?(.*)$/s.exec(node.code)!
    const given = names.split(',').map((one) => one.trim().slice(1))
    const over = (look(code) ?? {}) as object
    const entries = Object.entries(over)
    // Go visits the keys of a map in order.
    if (!Array.isArray(over)) entries.sort(([a], [b]) => (a < b ? -1 : 1))
    return entries
      .map(([key, value]) => {
        const pairs: [string, Value][] =
          given.length === 2
            ? [
                [given[0]!, key],
                [given[1]!, value],
              ]
            : [[given[0]!, value]]
        return renderAll(node.body, inner(value, names === '' ? [] : pairs), named)
      })
      .join('')
  }
  const value = look(node.code)
  if (!isTrue(value)) return renderAll(node.other, inner(scope.dot), named)
  return renderAll(node.body, inner(node.word === 'with' ? value : scope.dot), named)
}

const isTrue = (value: Value): boolean =>
  Boolean(value) && !(typeof value === 'object' && Object.keys(value as object).length === 0)

const textOf = (value: Value): string => (value === undefined ? '' : String(value))

function evaluate(code: string, scope: Scope, named: Map<string, Node[]>): Value {
  let piped: Value[] = []
  for (const command of splitAt(code, '|')) {
    const words = splitAt(command, ' ').filter((word) => word !== '')
    const [first = '', ...rest] = words
    const read = (word: string): Value => operand(word, scope, named)
    if (words.length === 1 && piped.length === 0 && !(first in functions) && first !== 'include')
      piped = [read(first)]
    else if (first === 'include') {
      const body = named.get(String(read(rest[0]!)))
      if (!body) throw new Error(`no template ${rest[0]}`)
      piped = [renderAll(body, { ...scope, dot: read(rest[1]!) }, named)]
    } else {
      const call = functions[first]
      if (!call) throw new Error(`the function ${first} is not known here`)
      piped = [(call as (...args: Value[]) => Value)(...rest.map(read), ...piped)]
    }
  }
  return piped[0]
}

function operand(word: string, scope: Scope, named: Map<string, Node[]>): Value {
  if (word.startsWith('(')) return evaluate(word.slice(1, -1), scope, named)
  if (word.startsWith('"')) return JSON.parse(word)
  if (/^-?\d+$/.test(word)) return Number(word)
  const [head = '', ...path] = word.split('.')
  const name = head.slice(1)
  const base = head === '' ? scope.dot : head === '$' ? scope.root : scope.variables.get(name)
  if (head !== '' && head !== '$' && !scope.variables.has(name))
    throw new Error(`${word} is not known here`)
  return path
    .filter((key) => key !== '')
    .reduce((value: Value, key) => (value as Record<string, Value> | undefined)?.[key], base)
}

/** Splits outside of quotes and parentheses. */
function splitAt(code: string, separator: string): string[] {
  const parts = ['']
  let [depth, isQuoted] = [0, false]
  for (const character of code) {
    if (character === '"') isQuoted = !isQuoted
    if (!isQuoted && character === '(') depth++
    if (!isQuoted && character === ')') depth--
    if (character === separator && depth === 0 && !isQuoted) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts.map((part) => part.trim())
}

const indent = (count: number, text: string) =>
  text
    .split('\n')
    .map((line) => (line === '' ? '' : `${' '.repeat(count)}${line}`))
    .join('\n')

const functions: Record<string, (...args: never[]) => Value> = {
  toYaml: (value: Value) => stringify(value).trimEnd(),
  nindent: (count: number, text: string) => `\n${indent(count, text)}`,
  quote: (value: Value) => JSON.stringify(String(value)),
  default: (fallback: Value, value: Value) => (isTrue(value) ? value : fallback),
  printf: (form: string, ...values: string[]) =>
    form.replaceAll('%s', () => String(values.shift() ?? '')),
  sha256sum: (text: string) => createHash('sha256').update(text).digest('hex'),
  trunc: (count: number, text: string) => text.slice(0, count),
  trimSuffix: (end: string, text: string) =>
    text.endsWith(end) ? text.slice(0, -end.length) : text,
  not: (value: Value) => !isTrue(value),
  or: (...values: Value[]) => values.find(isTrue) ?? values.at(-1),
  and: (...values: Value[]) => values.find((value) => !isTrue(value)) ?? values.at(-1),
  eq: (one: Value, other: Value) => one === other,
  list: (...values: Value[]) => values,
  join: (separator: string, values: string[]) => values.join(separator),
  ternary: (yes: Value, no: Value, condition: boolean) => (condition ? yes : no),
}
