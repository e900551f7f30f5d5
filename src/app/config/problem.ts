// Problems of a configuration as sentences with a place. What a file holds is made safe before it is printed on a terminal.

/** Where a value is: keys of sections and maps, indices of lists. */
export type Path = readonly (string | number)[]

/** A value that breaks a rule: "`path` must `must`; it is `value`". */
export type Finding = { path: Path; must: string; value?: unknown }

/** Where a value came from. */
export type Origin =
  | { from: 'default' }
  | { from: 'file'; file: string; line?: number; column?: number }
  | { from: 'env'; variable: string }
  | { from: 'override' }

/** Where a configuration came from: its file if there is one, and the origin of each key that is not a default. */
export type Source = {
  readonly file?: string
  readonly origins: Readonly<Record<string, Origin>>
}

/** Environment variables by name. */
export type Env = Readonly<Record<string, string | undefined>>

/** `chains.c.networks.mainnet.upstreams[0].url`, the name of a value in data. */
export const pathKey = (path: Path): string => join(path, (part) => part)

/** The same as a person may see it: whatever the file holds, safe to print and not too long. */
export const pathText = (path: Path): string => join(path, clip)

const join = (path: Path, show: (part: string) => string): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? show(part) : `${text}.${show(part)}`
  }, '')

/** A word in back-quotes, safe to print whatever it holds. */
export const shownWord = (word: string): string => `\`${clip(word)}\``

/** A value as a person would write it, on one line and not too long. */
export const shownValue = (value: unknown): string => {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object')
    return Object.keys(value).length === 0 ? 'an empty section' : 'a section with keys'
  if (value === '') return 'an empty text'
  return shownWord(String(value))
}

const clip = (text: string): string => {
  const safe = safeText(text).replaceAll('`', "'")
  return safe.length > 60 ? `${safe.slice(0, 57)}...` : safe
}

/** A text without the characters that could rewrite the terminal on which it is shown. */
export const safeText = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '\u{fffd}')

/** One thing that is wrong with the configuration: a sentence, and where it is. */
export type Problem = {
  message: string
  key?: string
  file?: string
  line?: number
  column?: number
  variable?: string
}

/** A problem of the value at a path: "`server.port` in portolan.yaml line 3 must be …". */
export const problemAt = (path: Path, origin: Origin, rest: string): Problem => ({
  message: `${subject(path, origin)} ${rest}`,
  ...placeOf(path, origin),
})

/** Where a problem is, as data. */
export const placeOf = (path: Path, origin: Origin): Omit<Problem, 'message'> => {
  const key = path.length > 0 ? { key: pathText(path) } : {}
  if (origin.from === 'env') return { ...key, variable: origin.variable }
  if (origin.from !== 'file') return key
  const { from: _, ...place } = origin
  return { ...key, ...place }
}

/** Where a problem is, as the end of a phrase. */
export const placeText = (origin: Origin): string => {
  if (origin.from === 'env') return ` in the variable ${shownWord(origin.variable)}`
  if (origin.from === 'override') return ' on the command line'
  if (origin.from === 'default') return ''
  return origin.line === undefined ? ` in ${origin.file}` : ` in ${origin.file} line ${origin.line}`
}

const subject = (path: Path, origin: Origin): string =>
  path.length === 0
    ? `The configuration${placeText(origin)}`
    : `\`${pathText(path)}\`${placeText(origin)}`

/** Everything that is wrong with a configuration, at once. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[], options?: ErrorOptions) {
    super(
      problems.length === 1
        ? problems[0]!.message
        : `The configuration has ${problems.length} problems:\n${problems.map((problem) => `- ${problem.message}`).join('\n')}`,
      options,
    )
    this.problems = problems
  }
}
