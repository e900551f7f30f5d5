import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { createLink } from '../faults/cluster-links.ts'
import { startTestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { startRedis } from '../helpers/redis.ts'

const redis = await startRedis()
afterAll(() => redis?.stop())

const net = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'

it.skipIf(!redis)(
  'a gateway that has lost the database refuses a key that is revoked, and serves the other ones',
  async () => {
    const node = await startStubNode()
    const redisLink = await createLink({ path: redis!.url })
    onTestFinished(redisLink.stop)
    const shared = { redis: { url: `redis://127.0.0.1:${redisLink.port}` } }
    const first = await startTestGateway([node.url], shared)
    const { host, port = 5432, user, database } = first.database.connection
    const link = await createLink({ path: join(host, `.s.PGSQL.${port}`) })
    onTestFinished(link.stop)
    onTestFinished(link.heal)
    const url = `postgres://${user}@127.0.0.1:${link.port}/${database}`
    const second = await startTestGateway([node.url], {
      ...{ ...shared, beside: first, database: { url } },
    })
    const { admin, member, organization_id } = await first.createTenant()
    const other = await first.createPair(organization_id, 'ROLE_MEMBER')
    const status = async ({ api_key }: { api_key: string }) =>
      (await second.post(net, { key: api_key })).status
    expect([await status(member), await status(other)]).toEqual([200, 200])

    // Neither end gets an error, as when the database dies: what it announces goes nowhere.
    await link.cut('both')
    const revoked = await first.call(admin, 'admin/RevokeCredential', { api_key: member.api_key })
    expect(revoked.status, revoked.text).toBe(200)
    // It cannot be looked up, so there is no answer before the time limit of the database.
    const isAccepted = async () => (await Promise.race([status(member), delay(200)])) === 200
    await expect.poll(isAccepted, { timeout: 1_000, interval: 50 }).toBe(false)
    expect(await isAccepted()).toBe(false)
    expect(await status(other)).toBe(200)

    link.heal()
    await expect.poll(() => status(member), { timeout: 20_000 }).toBe(401)
  },
)
