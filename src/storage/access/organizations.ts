// Organizations. Nothing is deleted here: `organization-erasing.ts` erases page by page, and the row of the organization
// goes last.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { isUniqueViolation } from '../pg/errors.ts'
import type { OrganizationRow } from './tables.ts'

/** The position of the next page of organizations: the last one returned. */
export type OrganizationCursor = Pick<OrganizationRow, 'create_time' | 'organization_id'>

/** Stores an organization; undefined when its domain is taken. */
export const insertOrganization = async (
  db: Db,
  organization: Pick<OrganizationRow, 'organization_id' | 'name' | 'domain' | 'create_time'>,
): Promise<OrganizationRow | undefined> =>
  await db
    .insertInto('organization')
    .values({ ...organization, update_time: organization.create_time })
    .onConflict((conflict) => conflict.column('domain').doNothing())
    .returningAll()
    .executeTakeFirst()

/** The organization with this id. */
export const findOrganization = async (
  db: Db,
  organization_id: string,
): Promise<OrganizationRow | undefined> =>
  await db
    .selectFrom('organization')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .executeTakeFirst()

/** The organization with this domain. */
export const findOrganizationByDomain = async (
  db: Db,
  domain: string,
): Promise<OrganizationRow | undefined> =>
  await db.selectFrom('organization').selectAll().where('domain', '=', domain).executeTakeFirst()

/** One page of all organizations, oldest first. */
export const listOrganizations = async (
  db: Db,
  { after, limit }: { after?: OrganizationCursor | undefined; limit: number },
): Promise<OrganizationRow[]> => {
  const page = db
    .selectFrom('organization')
    .selectAll()
    // The id decides between organizations of the same moment: a page must have one order only.
    .orderBy('create_time')
    .orderBy('organization_id')
    .limit(limit)
  if (!after) return await page.execute()
  return await page
    .where((eb) =>
      eb(
        eb.refTuple('create_time', 'organization_id'),
        '>',
        eb.tuple(after.create_time, after.organization_id),
      ),
    )
    .execute()
}

/** Disables an organization, or enables it again with null; undefined when there is none. */
export const setOrganizationDisabled = async (
  db: Db,
  change: { organization_id: string; disable_time: Date | null; update_time: Date },
): Promise<OrganizationRow | undefined> =>
  await db
    .updateTable('organization')
    .set({ disable_time: change.disable_time, update_time: change.update_time })
    .where('organization_id', '=', change.organization_id)
    .returningAll()
    .executeTakeFirst()

/** Gives an organization another name or domain; undefined when there is none. */
export const renameOrganization = async (
  db: Db,
  change: {
    organization_id: string
    name: string | undefined
    domain: string | undefined
    update_time: Date
  },
): Promise<OrganizationRow | 'taken' | undefined> => {
  const { organization_id, name, domain, update_time } = change
  try {
    return await db
      .updateTable('organization')
      .set({
        update_time,
        ...(name !== undefined && { name }),
        ...(domain !== undefined && { domain }),
      })
      .where('organization_id', '=', organization_id)
      .returningAll()
      .executeTakeFirst()
    // The unique index on the domain decides; a check before the update would race.
  } catch (error) {
    if (isUniqueViolation(error)) return 'taken'
    throw error
  }
}

/** Organizations by their id, their domain, or a part of their name. */
export const searchOrganizations = async (
  db: Db,
  query: string,
  limit: number,
): Promise<Pick<OrganizationRow, 'organization_id' | 'name'>[]> => {
  const { rows } = await sql<Pick<OrganizationRow, 'organization_id' | 'name'>>`
    select organization_id, name from organization
    where organization_id::text = ${query} or domain = lower(${query})
      or position(lower(${query}) in lower(name)) > 0
    order by create_time limit ${limit}`.execute(db)
  return rows
}
