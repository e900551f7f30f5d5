/** Removes the base path from a request target; undefined where the target is not below it. */
export type Within = (target: string) => string | undefined

/** Makes it. With an empty base path every target stays as it is. */
export function createWithin(basePath: string): Within {
  if (basePath === '') return (target) => target
  return (target) => {
    if (!target.startsWith(basePath)) return undefined
    const rest = target.slice(basePath.length)
    if (rest.startsWith('/')) return rest
    // `/portolan` and `/portolan?x` are the root as well.
    return rest === '' || rest.startsWith('?') ? `/${rest}` : undefined
  }
}
