import { expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'

it('an operation that waits for a stuck database is answered with 504 in time, and the next one works', async () => {
  const service = await startTestApp({ config: { server: { operation_timeout_seconds: 1 } } })
  const { admin, domain } = await service.createTenant()
  const call = () => service.call(admin, 'admin/GetOrganizationByDomain', { domain })
  expect((await call()).status).toBe(200)

  const client = await service.database.pool.connect()
  await client.query('begin')
  await client.query('lock table organization in access exclusive mode')
  const begun = performance.now()
  const { status, json } = await call()
  expect([status, json.code, json.reason]).toEqual([504, 'DEADLINE_EXCEEDED', 'OPERATION_TIMEOUT'])
  expect(performance.now() - begun).toBeLessThan(20_000)
  await client.query('rollback')
  client.release()
  expect((await call()).status).toBe(200)
})
