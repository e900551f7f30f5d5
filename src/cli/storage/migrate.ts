// `portolan migrate`. The service migrates at its start by itself; the command is for operators who want to see the locks
// first, or to migrate before the new version is rolled out.

import { silentLog } from '../../lib/log.ts'
import { distributeTransfers, distributionOf } from '../../storage/migrations/distribute.ts'
import { readMigrations } from '../../storage/migrations/files.ts'
import { describeHolder, type Holder } from '../../storage/migrations/lock.ts'
import { migrateDatabase, schemaState } from '../../storage/migrations/migrate.ts'
import { type PlannedMigration, planMigrations } from '../../storage/migrations/plan.ts'
import type { Db } from '../../storage/pg/database.ts'
import { estimateTables, type TableEstimate } from '../../storage/pg/table-estimates.ts'
import { CliError } from '../cli-error.ts'
import { bytesText } from '../progress.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { columnsOf, formatTable } from '../table.ts'
import { createMigrationProgress } from './migration-progress.ts'
import { withDatabase } from './with-database.ts'

type Options = GlobalOptions & {
  status?: boolean
  plan?: boolean
  json?: boolean
  distribute?: boolean
}

/** Migrates the database, or says what is missing and what it would do. */
export const runMigrate = (shell: Shell, options: Options): Promise<void> =>
  withDatabase(shell, options, async ({ db, signal }) => {
    if (options.status || options.plan) {
      const { pending: lacking, newer } = await schemaState(db)
      const pending = new Set(lacking)
      const files = await readMigrations()
      if (options.plan) {
        const missing = files.filter(({ name }) => pending.has(name))
        showPlan(shell, planMigrations(missing), await estimateTables(db), options)
        return
      }
      const rows = files.map(({ name }) => [name, pending.has(name) ? 'missing' : 'applied'])
      const others = newer.map((name) => [name, 'applied by a newer version'])
      print(
        shell,
        formatTable(['MIGRATION', 'STATUS'], [...rows, ...others], columnsOf(shell.stdout)),
      )
      return
    }
    const { report, done } = createMigrationProgress(shell)
    const log = { ...silentLog, warn: (fields: object, text: string) => warn(shell, fields, text) }
    const { applied } = await migrateDatabase(db, { log, signal, onProgress: report }).finally(done)
    for (const name of applied) print(shell, `${name} applied`)
    if (applied.length === 0) print(shell, 'The database has the schema of this version already.')
    if (options.distribute) await distribute(shell, db)
  })

async function distribute(shell: Shell, db: Db): Promise<void> {
  const distribution = await distributionOf(db)
  if (distribution === undefined)
    throw new CliError(
      'The database has no Citus. Run "create extension citus" in it on the coordinator, and add the other machines with citus_add_node.',
    )
  if (distribution === 'local') await distributeTransfers(db)
  print(
    shell,
    distribution === 'local' ? 'transfer distributed' : 'The transfers are distributed already.',
  )
}

/** Says what the migration waits for. */
function warn(shell: Shell, fields: { holder?: Holder }, text: string): void {
  const holder = 'holder' in fields ? ` (${describeHolder(fields.holder)})` : ''
  note(shell, `${text.charAt(0).toUpperCase()}${text.slice(1)}${holder} …`)
}

function showPlan(
  shell: Shell,
  plan: readonly PlannedMigration[],
  sizes: ReadonlyMap<string, TableEstimate>,
  { json }: Options,
): void {
  if (json) {
    printJson(shell, { migrations: plan })
    return
  }
  if (plan.length === 0) {
    print(shell, 'The database has the schema of this version already.')
    return
  }
  // From the statistics of the server: counting rows would itself read the table.
  const expected = (duration: string, table: string): string => {
    const size = sizes.get(table)
    if (duration !== 'scan' || !size) return duration === 'instant' ? 'a moment' : 'short'
    return `reads ${bytesText(size.bytes)} (${size.rows.toLocaleString('en')} rows)`
  }
  for (const { name, statements, in_transaction } of plan) {
    const rows = statements.map(({ statement, table, lock, duration }) => [
      lock,
      expected(duration, table),
      statement.length > 60 ? `${statement.slice(0, 57)}...` : statement,
    ])
    print(
      shell,
      `${name}${in_transaction ? '' : ' (outside of a transaction; can be repeated after a crash)'}\n${formatTable(
        ['  LOCK', 'EXPECTED', 'STATEMENT'],
        rows.map(([first, ...rest]) => [`  ${first}`, ...rest]),
        columnsOf(shell.stdout),
      )}\n`,
    )
  }
  print(
    shell,
    `Migrations that follow each other are one transaction: locks are held until its
end. "portolan migrate" runs them; so does the next start of the service.`,
  )
}
