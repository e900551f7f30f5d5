import { parseSync } from 'oxc-parser'

/** Writes `./x.js` for `./x.ts` in the imports and exports of a declaration file. */
export function withJsSpecifiers(name: string, text: string): string {
  const { module, errors } = parseSync(name, text)
  if (errors.length > 0) throw new Error(`${name}: ${errors[0]?.message}`)
  const requests = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest),
    ...module.staticExports.flatMap(({ entries }) => entries.map((entry) => entry.moduleRequest)),
  ]
  // One statement with several names gives its specifier several times.
  const ends = new Set(
    requests
      .filter((request) => request && /^\.\/.*\.ts$/.test(request.value))
      .map((request) => request!.end - "ts'".length),
  )
  let result = text
  for (const end of [...ends].sort((a, b) => b - a))
    result = `${result.slice(0, end)}js${result.slice(end + 2)}`
  return result
}
