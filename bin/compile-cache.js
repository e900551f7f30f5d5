import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/**
 * The folder for compiled code in the user's own cache directory. What is in it runs with the rights of this
 * user, so it is refused where another user can write to it or replace it; undefined means no cache.
 */
export function ownCompileCache(env = process.env, uid = process.getuid?.()) {
  // Where users have no ids there is nothing to check.
  if (uid === undefined) return undefined
  try {
    const { XDG_CACHE_HOME = '' } = env
    const base = isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache')
    mkdirSync(base, { recursive: true, mode: 0o700 })
    // The user may have put the cache elsewhere by a link; below it there is none.
    const own = join(realpathSync(base), 'portolan')
    const folder = join(own, 'compile-cache')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return [realpathSync(base), own, folder].every((path) => isPrivate(path, uid))
      ? folder
      : undefined
  } catch {
    return undefined
  }
}

function isPrivate(path, uid) {
  const found = lstatSync(path)
  return found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0
}
