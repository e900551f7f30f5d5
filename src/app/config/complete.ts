// Fills in defaults and checks a value against the schema in one walk. All problems are reported at once, and none of them repeats
// the value of a secret.

import type { TSchema } from 'typebox'
import { Check } from 'typebox/value'
import { isRecord } from './layers.ts'
import { expectation, isRequired, mapOf, type Node } from './node.ts'
import type { Finding, Path } from './problem.ts'
import { shownValue, shownWord } from './problem.ts'
import { isReference, maskText, parseReference } from './secrets.ts'

/** What a walk over a value reports. */
export type Report = { finding: (finding: Finding) => void; unknown: (path: Path) => void }

/** A copy of the value with every default filled in; what does not fit the schema is reported. */
export const complete = (node: Node, value: unknown, path: Path, report: Report): unknown => {
  if (node.properties) return completeSection(node, value, path, report)
  if (node.patternProperties) return completeMap(node, value, path, report)
  if (node.items) return completeList(node, value, path, report)
  const must = leafFault(node, value)
  // The value of a secret is not part of a message, whatever is wrong with it.
  if (must) report.finding({ path, must, ...(node.secret ? {} : { value }) })
  return value
}

/** What is wrong with the value of a single key, as the end of "must …". */
export const leafFault = (node: Node, value: unknown): string | undefined => {
  // Checked before the schema: its patterns accept references and literals alike.
  if (node.secret && typeof value === 'string') {
    if (isReference(value) && !parseReference(value))
      return 'be a reference like `file:/run/secrets/name` or `env:NAME`'
    if (value.includes(maskText))
      return `hold the secret itself or a reference to it, not the ${shownWord(maskText)} that stands for a hidden one`
  }
  if (Check(node as TSchema, value)) return undefined
  const hint =
    node.type === 'string' && (typeof value === 'number' || typeof value === 'boolean')
      ? ', in quotes'
      : ''
  return `be ${expectation(node)}${hint}`
}

const completeSection = (node: Node, value: unknown, path: Path, report: Report): unknown => {
  if (!isRecord(value)) return mismatch(node, value, path, report)
  const known = node.properties ?? {}
  for (const key of Object.keys(value))
    if (!Object.hasOwn(known, key)) report.unknown([...path, key])
  const entries: [string, unknown][] = []
  // In the order of the schema, so that a printed configuration is always in the same order.
  for (const [name, child] of Object.entries(known)) {
    const here = [...path, name]
    // An empty key (`server:` with every line below it commented out) means "not set".
    const given = value[name] ?? undefined
    if (given !== undefined) entries.push([name, complete(child, given, here, report)])
    else if (child.default !== undefined) entries.push([name, structuredClone(child.default)])
    else if (isRequired(node, name))
      report.finding({ path: here, must: `be given: ${expectation(child)}` })
    // A section without required keys is there with its defaults, also when the file leaves it out.
    else if (child.properties && node.required?.includes(name))
      entries.push([name, complete(child, {}, here, report)])
  }
  return Object.fromEntries(entries)
}

const completeMap = (node: Node, value: unknown, path: Path, report: Report): unknown => {
  if (!isRecord(value)) return mismatch(node, value, path, report)
  const map = mapOf(node)!
  const names = Object.keys(value)
  if (names.length < (node.minProperties ?? 0)) return mismatch(node, value, path, report)
  return Object.fromEntries(
    names.flatMap((name) => {
      const here = [...path, name]
      // Names of chains and headers become parts of addresses and requests, so their form is
      // checked too.
      if (!new RegExp(map.pattern, 'u').test(name)) {
        report.finding({ path: here, must: `have a name that matches ${shownWord(map.pattern)}` })
        return []
      }
      const part = value[name]
      // `header:` without a value removes the entry of a map that has a default.
      if (part === null && map.entry.properties === undefined && node.default !== undefined)
        return []
      return [[name, complete(map.entry, part, here, report)]]
    }),
  )
}

const completeList = (node: Node, value: unknown, path: Path, report: Report): unknown => {
  if (!Array.isArray(value) || value.length < (node.minItems ?? 0))
    return mismatch(node, value, path, report)
  return value.map((item, index) => complete(node.items!, item, [...path, index], report))
}

const mismatch = (node: Node, value: unknown, path: Path, report: Report): unknown => {
  // A text in place of a section may be a secret that lost its key.
  const shown = typeof value === 'string' ? {} : { value }
  report.finding({ path, must: `be ${expectation(node)}`, ...shown })
  return value
}

/** The sentence of a finding after its subject. */
export const findingText = (finding: Finding): string =>
  'value' in finding
    ? `must ${finding.must}; it is ${shownValue(finding.value)}.`
    : `must ${finding.must}.`
