import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { anyOfIn } from '../../src/contract/operation.ts'
import type { Entry } from '../../src/contract/operations/catalogue.ts'
import { services } from '../../src/contract/variant.ts'
import { type Answer, startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import type { Pair } from '../helpers/signer.ts'
import { type Belongings, deploy, makeBelongings, unknownBelongings } from './belongings.ts'
import { type Body, operations, sampleOf, shapeOf, validRequest } from './sample-requests.ts'

const chains = createScriptedChains()
const service = await startTestApp({ chains })
const other = await service.createTenant()
const tags = Object.keys(services) as (keyof typeof services)[]
const theirs = Object.fromEntries(
  await Promise.all(
    tags.map(async (tag) => [tag, await makeBelongings(service, other, tag, chains)]),
  ),
) as Record<keyof typeof services, Belongings>
const before = await snapshot()

/** The fields of a request that may name objects of another organization. */
const namesOf = (entry: Entry): string[] => {
  const known = [...Object.keys(unknownBelongings()), 'addresses']
  return Object.keys(shapeOf(entry).properties ?? {}).filter((name) => known.includes(name))
}

/** Each such field alone, and all of them together. */
const choices = (entry: Entry): string[][] => {
  const names = namesOf(entry)
  return names.length > 1 ? [...names.map((name) => [name]), names] : [names]
}

const fill = (entry: Entry, names: string[], things: Belongings): Body => {
  const { properties } = shapeOf(entry)
  const request = validRequest(entry)
  // Of fields of which one is needed only those that are chosen: others would be looked at first.
  const needed = anyOfIn(entry.row, services[entry.service])
  if (names.some((name) => needed.includes(name))) for (const name of needed) delete request[name]
  for (const name of names)
    request[name] =
      name === 'addresses' ? [things.address] : (things[name] ?? sampleOf(properties![name]!))
  return request
}

/** The answer with what was asked for, and what every answer makes again, taken out. */
const masked = ({ status, headers, text }: Answer, things: Belongings) => {
  let body = text
  for (const [name, value] of Object.entries(things)) body = body.replaceAll(value, `<${name}>`)
  body = body.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}/g, '<id>')
  body = body.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
  return { status, type: headers['content-type'], body }
}

// By a tenant of its own each time: it may track the same address or contract, and then has it.
const compare = async (pair: Pair, name: string, entry: Entry) => {
  for (const names of choices(entry)) {
    const request_id = randomUUID()
    const ask = async (things: Belongings) => {
      deploy(chains, things)
      const request = fill(entry, names, things)
      return masked(await service.call(pair, name, request, { 'x-request-id': request_id }), things)
    }
    const foreign = await ask(theirs[entry.service])
    expect(foreign, names.join()).toEqual(await ask(unknownBelongings()))
    if (entry.service === 'admin') expect([403, 404, 501]).toContain(foreign.status)
  }
}

const naming = operations.filter(([, entry]) => namesOf(entry).length > 0)

describe('what belongs to another organization', () => {
  it('is looked for in every operation that takes an id, a domain or an address', () => {
    expect(naming.length).toBeGreaterThan(100)
    expect(Object.keys(before)).toEqual(
      expect.arrayContaining([
        'balance',
        'contract',
        'credential',
        'organization',
        'rate_limit',
        'transfer',
        'wallet',
        'wallet_address',
      ]),
    )
  })

  it.each(naming.filter(([name]) => name !== 'admin/CreateOrganization'))(
    'is to a member in %s as if it were not there',
    async (name, entry) => compare((await service.createTenant()).member, name, entry),
  )

  it.each(naming.filter(([, { service: tag }]) => tag !== 'admin'))(
    'is to the administrator of another organization in %s as if it were not there',
    async (name, entry) => compare((await service.createTenant()).admin, name, entry),
  )

  it('is never listed for a member', async () => {
    const own = await service.createTenant()
    for (const [name, entry] of operations) {
      const { status, text } = await service.call(own.member, name, validRequest(entry))
      if (status !== 200) continue
      for (const value of Object.values(theirs[entry.service]))
        expect(text.includes(value), `${name} shows ${value}`).toBe(false)
    }
  })

  it('was not changed by any of these attempts', async () => {
    expect(await snapshot()).toEqual(before)
  })
})

/** All rows of the other organization. */
async function snapshot(): Promise<Record<string, unknown[]>> {
  const { pool } = service.database
  const { rows: tables } = await pool.query<{ table_name: string }>(
    `select table_name from information_schema.columns
     where table_schema = 'public' and column_name = 'organization_id' order by 1`,
  )
  const found: Record<string, unknown[]> = {}
  for (const { table_name } of tables.filter(
    // The chain of audit events grows by itself.
    ({ table_name: t }) => !/_(usage|attempt|queue)|^audit/.test(t),
  )) {
    // What the courier writes by itself while it continues trying to deliver.
    const changing =
      table_name === 'webhook'
        ? ['last_error', 'failing_since', 'update_time']
        : ['last_used_time', 'last_used_address']
    const columns = `to_jsonb(t) - array['${changing.join("','")}']`
    const { rows } = await pool.query(
      `select ${columns} as row from ${table_name} t where organization_id = $1 order by 1`,
      [other.organization_id],
    )
    if (rows.length > 0) found[table_name] = rows
  }
  return found
}
