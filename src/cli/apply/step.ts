import type { Path } from '../../app/config/problem.ts'

/** An id that exists, or will exist when an earlier step has run. */
export type Ref = { id?: string }

/** Where an operation runs: administration, or a chain and network of an organization. */
export type Where = 'admin' | { at: string; organization: Ref }

/** One call of an operation. The request is made when the call runs: it may need ids of earlier steps. */
export type Call = {
  where: Where
  operation: string
  request(): object
  /** Takes what later steps need from the answer. */
  onAnswer?(answer: Record<string, unknown>): void | Promise<void>
}

/** One change of the plan. */
export type Step = {
  mark: '+' | '~' | '-'
  /** What it is about, such as `key backend`. */
  subject: string
  /** What it creates or changes. */
  details: readonly string[]
  /** The part of the document that asks for it. */
  path: Path
  calls: readonly Call[]
}

/** A field of a change, as a diff shows it. */
export const fromTo = (name: string, before: unknown, after: unknown): string =>
  `${name}: ${valueText(before)} -> ${valueText(after)}`

/** A field of something new. */
export const field = (name: string, value: unknown): string => `${name}: ${valueText(value)}`

const valueText = (value: unknown): string =>
  Array.isArray(value) ? value.join(', ') || 'none' : String(value ?? 'none')

/** Whether two lists have the same members. */
export const sameMembers = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && new Set([...one, ...other]).size === new Set(one).size

/** The first ones of a list, and how many more there are. */
export const someOf = (list: readonly string[], most = 3): string =>
  list.length <= most
    ? list.join(', ')
    : `${list.slice(0, most).join(', ')} and ${(list.length - most).toLocaleString('en')} more`
