import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { captureLog } from '../../../test/helpers/log-capture.ts'
import { startRedis } from '../../../test/helpers/redis.ts'
import { silentLog as log } from '../../lib/log.ts'
import { type AccessChange, createChangePublisher, listenOnRedis } from './changes.ts'
import { connectRedis } from './redis.ts'

const server = await startRedis()
afterAll(() => server?.stop())

const change: AccessChange = { kind: 'credential', organization_id: 'o', credential_id: 'c' }

describe.skipIf(!server)('changes over Redis', () => {
  const url = server?.url as string
  const open = async (key_prefix: string, onChange?: (change: AccessChange) => void) => {
    const heard: AccessChange[] = []
    const note = onChange ?? ((one: AccessChange) => void heard.push(one))
    const listener = await listenOnRedis({ url, key_prefix, log, onChange: note })
    onTestFinished(listener.stop)
    return heard
  }
  let redis: Awaited<ReturnType<typeof connectRedis>>
  let publish: (change: AccessChange) => Promise<void>
  beforeEach(async () => {
    redis = await connectRedis({ url, key_prefix: 'a:', log })
    onTestFinished(redis.stop)
    publish = createChangePublisher(redis, { key_prefix: 'a:', log })
  })
  /** Until a listener is there, messages go nowhere. */
  const reaches = (heard: readonly AccessChange[]) =>
    expect.poll(async () => {
      await publish(change)
      return heard.at(-1)
    })

  it('reach every listener of the installation, and none of another one', async () => {
    const all = [await open('a:'), await open('a:'), await open('b:')] as const
    await reaches(all[0]).toEqual(change)
    await reaches(all[1]).toEqual(change)
    const organization: AccessChange = { kind: 'organization', organization_id: 'o' }
    await publish(organization)
    await expect.poll(() => all[1].at(-1)).toEqual(organization)
    expect(all[2]).toEqual([])
  })

  it('reach a listener again after the server was killed, and publishing never fails meanwhile', async () => {
    const heard = await open('a:')
    await reaches(heard).toEqual(change)
    await server!.kill()
    await publish(change)
    heard.length = 0
    await server!.start()
    await expect.poll(() => redis.ready(), { timeout: 5_000 }).toBe(true)
    await reaches(heard).toEqual(change)
  })

  it('are published in a bounded time to a server that does not answer', async () => {
    server!.pause()
    onTestFinished(() => server!.resume())
    const begin = performance.now()
    await publish(change)
    expect(performance.now() - begin).toBeLessThan(2_000)
  })

  it('are not heard where an access list refuses the channel, which is reported once', async () => {
    await redis.command('acl', 'setuser', 'deaf', 'on', '>secret', '+@all', '~*', 'resetchannels')
    const captured = await captureLog()
    const limited = `${url}?username=deaf&password=secret`
    const listener = await listenOnRedis({ url: limited, log: captured.log, onChange: () => {} })
    onTestFinished(listener.stop)
    await expect.poll(() => captured.text()).toContain('redis refuses the channel of changes')
    expect(captured.lines().filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  it('that cannot be read, or whose handler fails, end nothing', async () => {
    const tried: AccessChange[] = []
    await open('a:', (one) => {
      tried.push(one)
      throw new Error('failed')
    })
    await reaches(tried).toEqual(change)
    const organizations = (): unknown[] => tried.filter(({ kind }) => kind === 'organization')
    const [first, second] = ['1', '2'].map(
      (organization_id): AccessChange => ({ kind: 'organization', organization_id }),
    ) as [AccessChange, AccessChange]
    await publish(first)
    for (const text of ['', '{', 'null', '{"kind":"wake"}', '{"kind":"credential"}'])
      await redis.command('publish', 'a:change', text)
    await publish(second)
    await expect.poll(organizations).toEqual([first, second])
  })
})
