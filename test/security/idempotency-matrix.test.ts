import { randomBytes, randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { catalogue, type Entry } from '../../src/contract/operations/catalogue.ts'
import type { Service } from '../../src/contract/variant.ts'
import { startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { type Belongings, deploy, makeBelongings } from '../http/belongings.ts'
import { type Body, validRequest } from '../http/sample-requests.ts'

const chains = createScriptedChains()
const service = await startTestApp({ chains })
const twin = await startTestApp({ beside: service, chains })
const tenant = await service.createTenant()
const { pool } = service.database
const creating = catalogue.filter(({ row }) => row.creates)
const belongings = new Map<Service, Belongings>()
for (const tag of new Set(creating.map((entry) => entry.service)))
  belongings.set(tag, await makeBelongings(service, tenant, tag, chains))

const newAddress = () => `0x${randomBytes(20).toString('hex')}`

/** Fields that are given although they are optional: without them the request concerns something else. */
const always = new Set(['address', 'from', 'credential_id', 'gas'])

/** A request that creates something that is not there yet. */
const newRequest = async (entry: Entry): Promise<Body> => {
  const things = belongings.get(entry.service)!
  const { organization_id } = tenant
  const contract_address =
    entry.name === 'RegisterContract' ? newAddress() : things.contract_address!
  if (entry.name === 'RegisterContract') deploy(chains, { contract_address })
  const fields: Body = {
    ...things,
    ...{ organization_id, contract_address, name: randomUUID(), domain: `d-${randomUUID()}` },
    ...{ address: newAddress(), addresses: [newAddress()], header_key: `x-${randomUUID()}` },
    webhook_endpoint: `https://receiver.invalid/${randomUUID()}`,
    servers: ['broker.receiver.invalid:4222'],
  }
  if (entry.name === 'CreateTokenTransaction') {
    fields.contract_type = 'CONTRACT_TYPE_ERC20'
    fields.gas = '100000'
    fields.token_payload = { erc20: { contract_address, value: '1' } }
  }
  if (entry.name === 'RotateCredential') {
    const made = await service.call(tenant.admin, 'admin/CreateCredential', {
      ...{ organization_id, name: randomUUID() },
    })
    fields.credential_id = made.json.credential.credential_id
  }
  const sample = validRequest(entry)
  const given = Object.keys(entry.row.request).filter(
    (name) => name in fields && (name in sample || always.has(name)),
  )
  return { ...sample, ...Object.fromEntries(given.map((name) => [name, fields[name]])) }
}

const call = (on: typeof service, entry: Entry, body: Body, key: string) =>
  on.call(tenant.admin, `${entry.service}/${entry.name}`, body, { 'idempotency-key': key })

const tables = [
  ...['organization', 'credential', 'wallet', 'wallet_address', 'contract', 'webhook'],
  ...['webhook_header', 'delivery', 'managed_transaction'],
]
const countAll = async (): Promise<Record<string, number>> => {
  const counts = tables.map((name) => `(select count(*)::int from ${name}) as ${name}`)
  return (await pool.query(`select ${counts.join(', ')}`)).rows[0]
}

it.each(creating.map((entry) => [`${entry.service}/${entry.name}`, entry] as const))(
  '%s gives the same answer again from another process, and creates once',
  async (_path, entry) => {
    const body = await newRequest(entry)
    const key = randomUUID()
    const first = await call(service, entry, body, key)
    expect(first.status, first.text).toBe(200)
    const before = await countAll()
    const copies = await Promise.all([
      call(twin, entry, body, key),
      call(service, entry, body, key),
    ])
    for (const copy of copies) {
      expect(copy.text).toBe(first.text)
      expect(copy.headers['idempotency-replayed']).toBe('true')
    }
    expect(await countAll()).toEqual(before)
    // The same fields in another order are another body; a single field is changed.
    const entries = Object.entries(body)
    const changed = entries.length > 1 ? entries.toReversed() : [[entries[0]![0], randomUUID()]]
    const other = await call(twin, entry, Object.fromEntries(changed), key)
    expect([other.status, other.json.reason]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED'])
  },
)

it.each(creating.map((entry) => [`${entry.service}/${entry.name}`, entry] as const))(
  '%s creates nothing when a crash prevents that its answer is stored',
  async (_path, entry) => {
    const body = await newRequest(entry)
    const key = randomUUID()
    const before = await countAll()
    await pool.query(`create or replace function crash() returns trigger language plpgsql as
    $$ begin raise exception 'crash'; end $$`)
    await pool.query(`create or replace trigger crash before update on idempotency_key
    for each row when (new.answer_sealed is not null) execute function crash()`)
    const failed = await call(service, entry, body, key)
    await pool.query('drop trigger crash on idempotency_key')
    expect(failed.status, failed.text).toBeGreaterThanOrEqual(500)
    expect(await countAll()).toEqual(before)
    const again = await call(twin, entry, body, key)
    expect(again.status, again.text).toBe(200)
  },
)
