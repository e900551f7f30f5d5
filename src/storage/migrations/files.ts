import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One numbered file of SQL. */
export type MigrationFile = { name: string; sql: string }

const directory = import.meta.dirname
const pattern = /^(\d{4}-[a-z0-9-]+)\.sql$/

/** The migrations that this code knows, in order. */
export const readMigrations = async (): Promise<MigrationFile[]> => {
  const names = (await readdir(directory)).filter((file) => pattern.test(file)).sort()
  return await Promise.all(
    names.map(async (file) => ({
      name: file.slice(0, -'.sql'.length),
      sql: await readFile(join(directory, file), 'utf8'),
    })),
  )
}
