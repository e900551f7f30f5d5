import type { Path } from './finding.ts'
import type { Origin } from './source.ts'
import { pathText, shownWord } from './text.ts'

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
