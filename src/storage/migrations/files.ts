import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * The schema and its changes. 0001 to 0009 create the schema of 0.1.0, one file per area. A file is
 * never edited after its release: each change is a new file, and `released.itest.ts` checks both. A file with a
 * concurrent index build runs outside of a transaction (`concurrent.ts`).
 */

/** One numbered file of SQL. */
export type MigrationFile = { name: string; sql: string }

const directory = import.meta.dirname
const pattern = /^(\d{4}-[a-z0-9-]+)\.sql$/

/**
 * Whether a recorded migration is of a preview before 0.1.0. Each preview began with this file; the
 * schema of 0.1.0 is not made by its migrations.
 */
export const isPreview = (names: readonly string[]): boolean => names.includes('0001-access')

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
