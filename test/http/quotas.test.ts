import { expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'

const service = await startTestApp({ config: { quotas: { wallets: 7 } } })
const root = await service.createTenant()
const tenant = await service.createTenant()
const { organization_id } = tenant

const quotasFor = async (who: typeof tenant.member) =>
  (await service.call(who, 'admin/GetUsage', { organization_id })).json.quotas

it('SetQuota gives an organization a quota of its own, which GetUsage shows until it is taken away', async () => {
  const wallets = { quota_name: 'QUOTA_WALLETS', used: 0 }
  expect((await quotasFor(tenant.member))[0]).toEqual({
    ...wallets,
    quota_limit: 7,
    is_default: true,
  })
  const set = async (fields: object) =>
    await service.call(root.admin, 'admin/SetQuota', {
      organization_id,
      quota_name: 'QUOTA_WALLETS',
      ...fields,
    })
  const { status, json } = await set({ quota_limit: 0 })
  expect([status, json]).toEqual([
    200,
    { quota: { ...wallets, quota_limit: 0, is_default: false } },
  ])
  expect((await quotasFor(tenant.member))[0]).toMatchObject({ quota_limit: 0, is_default: false })
  expect((await set({})).json.quota).toEqual({ ...wallets, quota_limit: 7, is_default: true })
  const refused = await set({ quota_limit: -1 })
  expect([refused.status, refused.json.errors[0].field]).toEqual([400, 'quota_limit'])
  const unknown = await set({ quota_name: 'QUOTA_COFFEE' })
  expect([unknown.status, unknown.json.errors[0].field]).toEqual([400, 'quota_name'])
  expect((await quotasFor(tenant.member)).length).toBe(6)
})

it('a member sets no quota, its own neither', async () => {
  const { status, json } = await service.call(tenant.member, 'admin/SetQuota', {
    organization_id,
    quota_name: 'QUOTA_WEBHOOKS',
    quota_limit: 1_000_000,
  })
  expect([status, json.reason]).toEqual([403, 'PERMISSION_DENIED'])
})
