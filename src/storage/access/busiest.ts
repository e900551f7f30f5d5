import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** Calls of one day. */
export type CallCounts = { calls: number; errors: number; refused: number }

/** The calls of a day by organization, key and method, the most first. */
export type Busiest = {
  organizations: (CallCounts & { domain: string })[]
  keys: (CallCounts & { domain: string; credential_id: string; name: string })[]
  methods: (CallCounts & { chain: string; network: string; method: string })[]
}

type Row = CallCounts & {
  domain: string | null
  credential_id: string | null
  name: string | null
  chain: string | null
  network: string | null
  method: string | null
}

// Beyond this a list is of no use to a reader.
const mostRows = 3_000

/** Adds up the calls of all organizations on a day (`YYYY-MM-DD` in UTC), as far as services have stored them. */
export const listBusiest = async (db: Db, day: string): Promise<Busiest> => {
  // One look-up by key for each organization: the table has the days of all of them.
  const { rows } = await sql<Row>`
    select o.domain, u.credential_id, c.name, u.chain, u.network, u.method,
      sum(u.call_count)::float8 as calls, sum(u.error_count)::float8 as errors,
      sum(u.refused_count)::float8 as refused
    from organization o
    cross join lateral (
      select * from method_usage m where m.organization_id = o.organization_id and m.day = ${day}
    ) u
    left join credential c on c.credential_id = u.credential_id
    group by grouping sets ((o.domain), (o.domain, u.credential_id, c.name),
      (u.chain, u.network, u.method))
    order by calls desc, o.domain, u.credential_id, u.chain, u.network, u.method
    limit ${mostRows}`.execute(db)
  const busiest: Busiest = { organizations: [], keys: [], methods: [] }
  for (const { domain, credential_id, name, chain, network, method, ...counts } of rows) {
    if (method !== null && chain !== null)
      busiest.methods.push({ ...counts, chain, network: network ?? '', method })
    else if (domain !== null && credential_id !== null)
      busiest.keys.push({ ...counts, domain, credential_id, name: name ?? '' })
    else if (domain !== null) busiest.organizations.push({ ...counts, domain })
  }
  return busiest
}
