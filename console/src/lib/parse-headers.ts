/** Headers as people paste them: `name: value` lines, or the JSON of an object. */
export function parseHeaders(text: string): Record<string, string> {
  const trimmed = text.trim()
  if (trimmed.startsWith('{'))
    try {
      const parsed = JSON.parse(trimmed) as Record<string, unknown>
      return Object.fromEntries(
        Object.entries(parsed).map(([name, value]) => [
          name.toLowerCase(),
          [value].flat().join(' '),
        ]),
      )
    } catch {
      // Then it is read as lines, and the missing header is named.
    }
  const headers: Record<string, string> = {}
  for (const line of trimmed.split(/\r?\n/)) {
    const at = line.indexOf(':')
    if (at > 0) headers[line.slice(0, at).trim().toLowerCase()] = line.slice(at + 1).trim()
  }
  return headers
}
