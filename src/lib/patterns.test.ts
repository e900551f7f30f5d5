import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AST, RegExpParser } from '@eslint-community/regexpp'
import { parseSync } from 'oxc-parser'
import {
  Chars,
  getConsumedChars,
  getFirstConsumedChar,
  isZeroLength,
  type ReadonlyFlags,
} from 'regexp-ast-analysis'
import { analyse } from 'scslre'
import { expect, test } from 'vitest'

// Every regular expression of the service must run in time linear in its input: one that does not is a way
// to stop the thread for all tenants. Repetitions of `.` and the like are bounded instead.

type Pattern = { source: string; flags: string; place: string }

/** Patterns whose input no stranger and no tenant gives, with who does. */
const allowed = new Map<string, string>([
  [String.raw`/\(.*\)/`, 'columns of our own statements'],
  [String.raw`/(\d+)(\/bin)?$/`, 'paths of this machine'],
  ['/0+$/', 'digits of an amount, at most 78'],
  [String.raw`/\s*\n[\s\S]*$/`, "messages about the operator's configuration"],
  [String.raw`/^(?:valkey|redis)_version:(\S+)/m`, "the answer of the operator's Redis"],
  [
    String.raw`/^(?:admin|miner|personal|engine|clique|anvil|hardhat)_|^evm_(?:mine|revert|snapshot|set|increase)|_(?:accounts|coinbase|mining|hashrate|getWork|sendTransaction|(?:sign|submit)\w*)$/`,
    'names in the configuration',
  ],
  [String.raw`/[.:\s]+$/`, "messages about the operator's configuration"],
])

const isUnbounded = (node: AST.Quantifier) => node.max === Number.POSITIVE_INFINITY

/** Whether nothing before this alternative's elements can be tried at a later place. */
const isAnchored = ({ elements }: AST.Alternative, flags: ReadonlyFlags): boolean => {
  const [first] = elements
  return first?.type === 'Assertion' && first.kind === 'start' && !flags.multiline
}

/**
 * A repetition behind a beginning that may stand anywhere: where the rest fails, it was walked over from
 * each of the beginnings. It is linear only when a beginning cannot stand inside of the repetition.
 */
function findRepeatedStart(pattern: AST.Pattern, flags: ReadonlyFlags): string | undefined {
  for (const alternative of pattern.alternatives) {
    if (isAnchored(alternative, flags)) continue
    const { elements } = alternative
    for (const [at, element] of elements.entries()) {
      const loops = loopsIn(element)
      if (loops.length === 0) continue
      const isLast = elements.slice(at + 1).length === 0
      if (isLast && element.type === 'Quantifier') continue
      const before = elements
        .slice(0, at)
        .filter(
          (one) =>
            one.type === 'Character' ||
            one.type === 'CharacterSet' ||
            one.type === 'CharacterClass',
        )
      for (const loop of loops) {
        const inside = getConsumedChars(loop, flags).chars
        const isSplit = before.some((one) =>
          getConsumedChars(one, flags).chars.isDisjointWith(inside),
        )
        if (!isSplit) return `${loop.raw} is walked over again from every beginning`
      }
    }
  }
  return undefined
}

function loopsIn(node: AST.Element): AST.Quantifier[] {
  if (node.type === 'Quantifier')
    return isUnbounded(node) ? [node] : loopsIn(node.element as AST.Element)
  if (node.type === 'Group' || node.type === 'CapturingGroup')
    return node.alternatives.flatMap(({ elements }) => elements.flatMap(loopsIn))
  return []
}

/** A repeated choice between alternatives that begin alike: the ways to read a text double with each turn. */
function findAmbiguousChoice(pattern: AST.Pattern, flags: ReadonlyFlags): string | undefined {
  const visit = (node: AST.Element, isRepeated: boolean): string | undefined => {
    if (node.type === 'Quantifier')
      return visit(node.element as AST.Element, isRepeated || isUnbounded(node))
    if (node.type !== 'Group' && node.type !== 'CapturingGroup') return undefined
    const { alternatives } = node
    if (isRepeated) {
      let seen = Chars.empty(flags)
      for (const one of alternatives) {
        const { char } = getFirstConsumedChar(one, 'ltr', flags)
        if (isZeroLength(one, flags) || !char.isDisjointWith(seen))
          return `${node.raw} is ambiguous`
        seen = seen.union(char)
      }
    }
    for (const { elements } of alternatives)
      for (const element of elements) {
        const found = visit(element, isRepeated)
        if (found) return found
      }
    return undefined
  }
  for (const { elements } of pattern.alternatives)
    for (const element of elements) {
      const found = visit(element, false)
      if (found) return found
    }
  return undefined
}

/** What may take more than linear time; undefined when nothing does. */
function findProblem({ source, flags }: Pick<Pattern, 'source' | 'flags'>): string | undefined {
  const parser = new RegExpParser()
  const isUnicode = flags.includes('u')
  const parsed = parser.parsePattern(source, 0, source.length, { unicode: isUnicode })
  const known = parser.parseFlags(flags)
  const { reports } = analyse({ pattern: parsed, flags: known }, { maxReports: 1 })
  const [report] = reports
  if (report) return `${report.type} at ${JSON.stringify(report.character.pick)}`
  return findRepeatedStart(parsed, known) ?? findAmbiguousChoice(parsed, known)
}

type Node = { type: string; [name: string]: unknown }

/** All literals, patterns of schemas, and constructions of constant text; what cannot be read is named by its place. */
function patternsOf(file: string, text: string): { patterns: Pattern[]; unread: string[] } {
  const patterns: Pattern[] = []
  const unread: string[] = []
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type, regex, callee, arguments: args, start } = node as Node
    const place = () => `${file}:${text.slice(0, Number(start)).split('\n').length}`
    if (type === 'Literal' && regex) {
      const { pattern, flags } = regex as { pattern: string; flags: string }
      patterns.push({ source: pattern, flags, place: place() })
    }
    const isMade = type === 'NewExpression' || type === 'CallExpression'
    if (isMade && (callee as Node | undefined)?.name === 'RegExp') {
      const [source, flags] = (args as Node[]).map(constantOf)
      if (source === undefined) unread.push(place())
      else patterns.push({ source, flags: flags ?? '', place: place() })
    }
    // Of a schema.
    const { key, value } = node as { key?: Node; value?: Node }
    if (type === 'Property' && key?.name === 'pattern' && value) {
      const source = constantOf(value)
      if (source !== undefined) patterns.push({ source, flags: 'u', place: place() })
    }
    for (const child of Object.values(node)) visit(child)
  }
  visit(parseSync(file, text).program)
  return { patterns, unread }
}

function constantOf(node: Node): string | undefined {
  if (node.type === 'Literal') return String(node.value)
  const { quasis, expressions } = node as {
    quasis?: { value: { cooked: string } }[]
    expressions?: []
  }
  return node.type === 'TemplateLiteral' && expressions?.length === 0
    ? quasis?.[0]?.value.cooked
    : undefined
}

const folder = join(import.meta.dirname, '..')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !/\.i?test\.ts$/.test(name))
  .sort()
const read = files.map((name) => patternsOf(name, readFileSync(join(folder, name), 'utf8')))

test('every regular expression of the service takes linear time', () => {
  const patterns = read.flatMap((one) => one.patterns)
  expect(patterns.length).toBeGreaterThan(150)
  const problems = patterns.flatMap(({ source, flags, place }) => {
    const text = `/${source}/${flags}`
    const problem = allowed.has(text) ? undefined : findProblem({ source, flags })
    return problem ? [`${place} ${text}: ${problem}`] : []
  })
  expect(problems).toEqual([])
})

test('patterns that are put together at run time are known', () => {
  const places = read.flatMap(({ unread }) => unread).map((place) => place.replace(/:\d+$/, ''))
  expect(places).toEqual([
    // Patterns of schemas, which are read where they are written down.
    'app/config/complete.ts',
    'app/config/env-source.ts',
    'contract/validate.ts',
    // Lists of constant words.
    'gateway/rpc/answers.ts',
    'storage/archive/partitions.ts',
    // Names of columns of our own schema, in tests.
    'storage/archive/testing/test-rows.ts',
  ])
})

test('every pattern that is allowed is there', () => {
  const all = new Set(
    read.flatMap(({ patterns }) => patterns.map(({ source, flags }) => `/${source}/${flags}`)),
  )
  expect([...allowed.keys()].filter((text) => !all.has(text))).toEqual([])
})

test.each([
  ['(a+)+$', ''],
  ['^(?:a|a)*$', ''],
  ['^(?:a|ab|b)*$', ''],
  ['\\s+$', ''],
  ['x*y', ''],
  ['[^,]*,$', ''],
  ['^[^;]*(?:;\\s*)*\\s*$', ''],
  ['transaction.*already', 'i'],
  ['a|state history .*(?:pruned|gone)', 'i'],
  ['^header .* found', 'm'],
  ['(?:x{1,3}\\w*)y', ''],
])('/%s/%s is found', (source, flags) => {
  expect(findProblem({ source, flags })).toBeTypeOf('string')
})

test.each([
  ['^0x[0-9a-f]*$', 'i'],
  ['"[^"]*"', 'g'],
  ['state #?\\d+ is', 'i'],
  ['^\\s*application/json', ''],
  ['transaction.{0,80}already', 'i'],
  ['\\(PostgreSQL\\) (\\d+)', ''],
])('/%s/%s is linear', (source, flags) => {
  expect(findProblem({ source, flags })).toBeUndefined()
})
