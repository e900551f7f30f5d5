import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The root of the repository. */
export const root: string = join(import.meta.dirname, '../..')

/** Builds the package and packs it as npm would publish it; returns the archive and the names of its files. */
export const packPackage = async (
  folder: string,
): Promise<{ archive: string; files: string[] }> => {
  const built = join(folder, 'built')
  await run(process.execPath, [join(root, 'scripts/build-package.ts'), built])
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: built,
  })
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
  return {
    archive: join(folder, packed.filename),
    files: packed.files.map(({ path }) => path),
  }
}

/**
 * Unpacks the archive into an empty project and links the packages that its manifest names, and no others, from the
 * repository. This costs a second instead of the half minute of `npm install`, which the campaign runs.
 */
export const unpackPackage = async (archive: string, project: string): Promise<string> => {
  const modules = join(project, 'node_modules')
  const own = join(modules, 'portolan')
  await mkdir(own, { recursive: true })
  await run('tar', ['-xzf', archive, '-C', own, '--strip-components=1'])
  const manifest = JSON.parse(await readFile(join(own, 'package.json'), 'utf8'))
  const names = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
  const bundled: string[] = manifest.bundleDependencies ?? []
  for (const name of names.filter((one) => !bundled.includes(one))) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    // What a bundled package needs may be there in another version than the tools of the repository need.
    const places = ['', ...bundled.map((one) => join(one, 'node_modules'))]
    const found = places
      .map((place) => join(root, 'node_modules', place, name))
      .findLast((folder) => existsSync(folder))
    await symlink(found ?? join(root, 'node_modules', name), join(modules, name))
  }
  return own
}
