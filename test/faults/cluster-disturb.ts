import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Member, World } from './cluster-world.ts'

/** A time with a beginning and an end, in milliseconds since 1970. */
export type Span = { from: number; to: number }

/** One disturbance after the other, with a pause in which all must recover. */
export async function disturb(
  world: World,
  {
    isOver,
    random,
    outcome,
    losses,
    onEvent,
    isUpgrade,
  }: {
    isOver(): boolean
    outcome: { counts: Record<string, number> }
    random(): number
    losses: Span[]
    onEvent(text: string): void
    isUpgrade: boolean
  },
): Promise<void> {
  const { members, database, bouncer, redis } = world
  const one = (): Member => members[Math.floor(random() * members.length)]!
  const flush = async () => {
    const client = new Redis(redis.url)
    await client.flushall()
    client.disconnect()
  }
  const nameless = (work: Promise<void>): Promise<string> => work.then(() => '')
  const kinds: [string, () => Promise<string>][] = [
    [
      'kill -9',
      async () => {
        const member = one()
        await member.end('SIGKILL')
        await member.start()
        return member.name
      },
    ],
    [
      'SIGSTOP beyond the lease',
      async () => {
        const member = one()
        member.signal('SIGSTOP')
        await delay(6_000)
        member.signal('SIGCONT')
        return member.name
      },
    ],
    [
      'rolling restart',
      async () => {
        const member = one()
        await member.end('SIGTERM')
        await member.start()
        return member.name
      },
    ],
    [
      'partition',
      async () => {
        const member = one()
        member.cut()
        await delay(5_000)
        member.heal()
        return member.name
      },
    ],
    ['PostgreSQL killed', () => nameless(database.killDatabase())],
    ['PgBouncer killed', () => nameless(bouncer.kill().then(bouncer.start))],
    ['Redis flushed', () => nameless(flush())],
    ['Redis killed', () => nameless(redis.kill().then(redis.start))],
  ]
  if (isUpgrade) {
    world.upgrade()
    for (const member of members) {
      await member.end('SIGTERM')
      await member.start()
      onEvent(`${new Date().toISOString()} other version ${member.name}`)
    }
    outcome.counts.disturbances!++
  }
  while (!isOver()) {
    await delay(2_000 + random() * 3_000)
    if (isOver()) return
    const [name, run] = kinds[Math.floor(random() * kinds.length)]!
    outcome.counts.disturbances!++
    const from = Date.now()
    onEvent(`${new Date(from).toISOString()} ${name} ${await run()}`)
    // A process that alone is cut off from Redis takes its share beside what the others admit.
    if (name.startsWith('Redis') || name === 'partition') losses.push({ from, to: Date.now() })
  }
}
