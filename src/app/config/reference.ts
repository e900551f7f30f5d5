/** Whether a secret is named by `file:` or `env:` instead of being there itself. */
export const isReference = (text: string): boolean => /^(?:file|env):/.test(text)

/** The two parts of a reference; undefined when it is not one, or is malformed. */
export const parseReference = (
  text: string,
): { from: 'file'; path: string } | { from: 'env'; name: string } | undefined => {
  const name = /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1]
  if (name !== undefined) return { from: 'env', name }
  const path = /^file:([^\0]+)$/.exec(text)?.[1]
  return path === undefined ? undefined : { from: 'file', path }
}
