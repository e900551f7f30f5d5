import { cp, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { bundleCheckout } from '../helpers/bundle.ts'

const root = join(import.meta.dirname, '../..')

/** The migrations of a next version: they expand the schema, inside and outside of a transaction. */
export const nextMigrations = [
  { name: '9990-next-column', sql: 'alter table wallet add column next_label text;' },
  {
    name: '9991-next-index',
    sql: 'create index concurrently if not exists transfer_next on transfer (organization_id, block_time);',
  },
]

/** A checkout of a next version: this one with another number and two migrations. */
export async function makeNextVersion(): Promise<AsyncDisposable & { program: string }> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'portolan-next-')))
  await cp(join(root, 'src'), join(folder, 'src'), { recursive: true })
  for (const name of ['node_modules', 'client', 'console', 'devnet', 'bin', 'docs'])
    await symlink(join(root, name), join(folder, name))
  const next = { ...manifest, version: '9.9.0' }
  await writeFile(join(folder, 'package.json'), JSON.stringify(next))
  for (const { name, sql } of nextMigrations)
    await writeFile(join(folder, 'src/storage/migrations', `${name}.sql`), sql)
  return {
    program: await bundleCheckout(folder),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
