/** Whether an operation only reads. What shows a secret, or starts work, counts as a write. */
export type Access = 'read' | 'write'

/**
 * One scope: `*` is everything; `c:read` and `c:write` are the operations of a chain (or of `admin`), those that
 * read or all of them, `*:read` and `*:write` those of all chains; `gateway`, `gateway:c` and
 * `gateway:c/mainnet` are the calls of the gateway, with `:read` behind them all but sending.
 */
export const scopePattern =
  '^(?:\\*|(?:\\*|(?!gateway:)[a-z0-9]+(?:-[a-z0-9]+)*):(?:read|write)|gateway(?::(?!(?:read|write)$)[a-z0-9]+(?:-[a-z0-9]+)*(?:/[a-z0-9]+(?:-[a-z0-9]+)*)?)?(?::read)?)$'

/** What an operation needs. */
export const operationScope = (chain: string, access: Access): string => `${chain}:${access}`

/** What a call of the gateway needs. */
export const gatewayScope = (chain: string, network: string, access: Access): string =>
  `gateway:${chain}/${network}${access === 'read' ? ':read' : ''}`

/** Whether a list of scopes holds all that a scope allows. */
export function coversScope(held: ReadonlySet<string>, wanted: string): boolean {
  for (let scope: string | undefined = wanted; scope !== undefined; scope = widerScope(scope))
    if (held.has(scope)) return true
  return isWidened(held, wanted)
}

/** The next wider scope of the same kind; a read one is wider over more networks. */
function widerScope(scope: string): string | undefined {
  if (scope === '*') return undefined
  const read = /:read$/.exec(scope) ? ':read' : ''
  const bare = read ? scope.slice(0, -read.length) : scope
  if (!scope.startsWith('gateway')) {
    const [service = '', access = ''] = scope.split(':')
    return service === '*' ? '*' : `*:${access}`
  }
  if (bare.includes('/')) return bare.slice(0, bare.indexOf('/')) + read
  if (bare !== 'gateway') return `gateway${read}`
  return '*'
}

/** A scope that only reads is part of the one that also writes. */
function isWidened(held: ReadonlySet<string>, wanted: string): boolean {
  if (!wanted.endsWith(':read')) return false
  const bare = wanted.slice(0, -':read'.length)
  return coversScope(held, bare.startsWith('gateway') ? bare : `${bare}:write`)
}
