import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { listQueuedWebhooks } from '../../src/storage/webhooks/delivery-claims.ts'
import { shiftedClock, startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'

const clock = shiftedClock()
const service = await startTestApp({ chains: createScriptedChains(), clock })
const twin = await startTestApp({ beside: service, clock })
const { db } = service.database
const { call, createTenant } = service
const operator = await createTenant()
const as = (operation: string, body: object) => call(operator.admin, `admin/${operation}`, body)

test('an organization gets another name and domain, but not the domain of another one', async () => {
  const { organization_id } = await createTenant()
  const renamed = await as('RenameOrganization', {
    organization_id,
    name: 'New',
    domain: 'new-one',
  })
  expect(renamed.json.organization).toMatchObject({ name: 'New', domain: 'new-one' })
  const taken = await as('RenameOrganization', { organization_id, domain: operator.domain })
  expect([taken.status, taken.json.reason]).toEqual([409, 'DOMAIN_TAKEN'])
  expect((await as('RenameOrganization', { organization_id })).status).toBe(400)
})

test('a disabled organization is refused in every process, and loses nothing', async () => {
  const tenant = await createTenant()
  const { organization_id } = tenant
  const { json } = await call(tenant.member, 'c/RegisterWallet', { name: 'Till' })
  await sql`
    insert into delivery_queue values (gen_random_uuid(), ${organization_id}, gen_random_uuid(), 1,
      'WEBHOOK_STATUS_PENDING', now() + interval '1 hour', null, 0)`.execute(db)
  const queued = async () =>
    (await listQueuedWebhooks(db)).webhooks.filter((row) => row.organization_id === organization_id)
      .length
  expect(await queued()).toBe(1)
  const disabled = await as('DisableOrganization', { organization_id })
  expect(disabled.json.organization.disable_time).toMatch(/Z$/)
  for (const process of [service, twin])
    expect((await process.call(tenant.member, 'c/ListWallets', {})).status).toBe(401)
  expect(await queued()).toBe(0)
  const enabled = await as('EnableOrganization', { organization_id })
  expect(enabled.json.organization.disable_time).toBeNull()
  // The other process keeps the failure of the key until it is notified of the change.
  const wallets = async () => (await twin.call(tenant.member, 'c/ListWallets', {})).json.wallets
  await expect.poll(wallets).toMatchObject([{ wallet_id: json.wallet_id }])
  expect(await queued()).toBe(1)
})

test('the organization of the own key, or one without its domain, cannot be ended', async () => {
  const { organization_id, domain } = operator
  for (const operation of ['DisableOrganization', 'DeleteOrganization']) {
    const own = await as(operation, {
      organization_id,
      ...(operation === 'DeleteOrganization' && { domain }),
    })
    expect([own.status, own.json.reason]).toEqual([409, 'OWN_ORGANIZATION'])
  }
  const other = await createTenant()
  const wrong = await as('DeleteOrganization', { organization_id: other.organization_id, domain })
  expect([wrong.status, wrong.json.errors[0].field]).toEqual([400, 'domain'])
  expect((await call(other.member, 'c/ListWallets', {})).status).toBe(200)
})

test('a deleted organization ends at once and is erased with a report, and others stay', async () => {
  const [tenant, other] = [await createTenant(), await createTenant()]
  const { organization_id, domain } = tenant
  for (const { member } of [tenant, other]) {
    const { json } = await call(member, 'c/RegisterWallet', { name: 'Till' })
    const address = '0x00000000000000000000000000000000000000a1'
    await call(member, 'c/RegisterAddress', { wallet_id: json.wallet_id, address })
  }
  await expect
    .poll(
      async () =>
        (
          await sql`select from audit_event where
      organization_id = ${organization_id}`.execute(db)
        ).rows.length,
    )
    .toBe(2)
  const deleted = await as('DeleteOrganization', { organization_id, domain })
  expect(deleted.json.deletion).toMatchObject({
    deletion_state: 'DELETION_STATE_ERASING',
    credentials_revoked: 2,
    finish_time: null,
  })
  for (const process of [service, twin])
    expect((await process.call(tenant.member, 'c/ListWallets', {})).status).toBe(401)
  const enabling = await as('EnableOrganization', { organization_id })
  expect([enabling.status, enabling.json.reason]).toEqual([409, 'ORGANIZATION_DELETED'])
  clock.shift(120_000)
  const report = async () =>
    (await as('GetOrganizationDeletion', { organization_id })).json.deletion
  await expect
    .poll(async () => (await report()).deletion_state, { timeout: 30_000 })
    .toBe('DELETION_STATE_DONE')
  const { erased, not_erased } = await report()
  expect(erased).toEqual(
    expect.arrayContaining([
      { table: 'credential', rows: 2 },
      { table: 'organization', rows: 1 },
      { table: 'wallet', rows: 1 },
      { table: 'wallet_address', rows: 1 },
    ]),
  )
  expect(not_erased.join()).toContain('backups')
  const { rows } = await sql<{ detail: string | null }>`
    select detail from audit_event where organization_id = ${organization_id}
      and principal_organization_id = ${organization_id}`.execute(db)
  expect(rows).toEqual([{ detail: null }, { detail: null }])
  expect((await call(other.member, 'c/ListWallets', {})).json.wallets).toHaveLength(1)
  const again = await as('CreateOrganization', { name: 'Again', domain })
  expect(again.status).toBe(200)
  expect((await as('GetOrganizationDeletion', { organization_id: 'x' })).status).toBe(404)
})
