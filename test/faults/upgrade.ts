// Upgrades two services behind haproxy to a next version and back while clients call without a pause. No release exists
// yet, so this checkout is the release before, and the next version is a copy with two migrations. The way back is the
// documented rollback: the old code on the expanded schema.

import { parseArgs } from 'node:util'
import pg from 'pg'
import { bundledService } from '../helpers/bundle.ts'
import { makeNextVersion, nextMigrations } from './next-version.ts'
import { hasBalancer, runRolling } from './rolling.ts'

const main = await bundledService()
const { values } = parseArgs({ options: { requests: { type: 'string', default: '8000' } } })
if (!(await hasBalancer('haproxy'))) throw new Error('there is no haproxy here')
await using next = await makeNextVersion()
const { failures, ...outcome } = await runRolling({
  balancer: 'haproxy',
  requests: Number(values.requests),
  restarts: 4,
  // Both to the next version, then both back. After each restart two versions are side by side or the same.
  programOf: (restart) => (restart < 2 ? next.program : main),
  onRestart: (text) => console.log(text),
  inspect: async (connection) => {
    const client = new pg.Client(connection)
    await client.connect()
    const { rows } = await client.query<{ name: string }>(
      `select m.name from schema_migration m, pg_index i
       where m.name > '9990' and i.indexrelid = 'transfer_next'::regclass and i.indisvalid
       order by m.name`,
    )
    await client.end()
    const found = rows.map(({ name }) => name).join()
    if (found !== nextMigrations.map(({ name }) => name).join())
      throw new Error(`the schema is not that of the next version: ${found}`)
  },
})
console.log(outcome, `${failures.length} failed`, failures.slice(0, 10))
if (failures.length > 0) process.exitCode = 1
