import type { TSchema } from 'typebox'
import { complete, findingText } from './complete.ts'
import { parseYaml } from './file-source.ts'
import { unknownKeyHint } from './load.ts'
import type { Node } from './node.ts'
import {
  ConfigError,
  type Origin,
  type Path,
  type Problem,
  pathText,
  placeOf,
  placeText,
  problemAt,
} from './problem.ts'

/** A checked document, and how to report a problem at one of its parts. */
export type ReadDocument<value> = {
  value: value
  problem(path: Path, rest: string): Problem
}

/** Reads a YAML document against a schema, as the configuration is read; every problem comes at once, with its line. */
export function readDocument<value>(
  schema: TSchema,
  { name, text }: { name: string; text: string },
): ReadDocument<value> {
  const root = schema as unknown as Node
  const source = parseYaml(text, name)
  // Every part of the document has one origin, so only its line differs.
  const originAt = (path: Path): Origin => ({ from: 'file', file: name, ...source.locate(path) })
  const problem = (path: Path, rest: string): Problem => problemAt(path, originAt(path), rest)
  const problems: Problem[] = []
  const value = complete(root, source.value ?? {}, [], {
    finding: (found) => problems.push(problem(found.path, findingText(found))),
    unknown: (path) => {
      const origin = originAt(path)
      const hint = unknownKeyHint(root, path, path.length - 1)
      const message = `Unknown key \`${pathText(path)}\`${placeText(origin)}. ${hint}`
      problems.push({ message, ...placeOf(path, origin) })
    },
  })
  if (problems.length > 0) throw new ConfigError(problems)
  return { value: value as value, problem }
}
