import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Fault } from './cluster-failures.ts'
import type { Way } from './cluster-links.ts'
import type { Member, World } from './cluster-world.ts'

const ways: readonly Way[] = ['both', 'to', 'from']

/** A time with a beginning and an end, in milliseconds since 1970. */
export type Span = { from: number; to: number }

/** One disturbance after the other, with a pause in which all must recover. */
export async function disturb(
  world: World,
  {
    isOver,
    random,
    outcome,
    faults,
    pauseMs = 3_500,
    least = 0,
    onEvent,
    isUpgrade,
  }: {
    isOver(): boolean
    outcome: { counts: Record<string, number> }
    random(): number
    /** Where everything that was done is written down. */
    faults: Fault[]
    /** On average. */
    pauseMs?: number | undefined
    /** How many there are however long it takes; 9 are each kind once. */
    least?: number | undefined
    onEvent(text: string): void
    isUpgrade: boolean
  },
): Promise<void> {
  const { members, database, bouncer, redis } = world
  const some = <item>(items: readonly item[]): item => items[Math.floor(random() * items.length)]!
  const flush = async () => {
    const client = new Redis(redis.url)
    await client.flushall()
    client.disconnect()
  }
  const kinds: [string, (member: Member, fault: Fault) => Promise<unknown>, isOfOne?: true][] = [
    [
      'kill -9',
      async (member, fault) => {
        await member.end('SIGKILL')
        fault.exited = Date.now()
        await member.start()
      },
      true,
    ],
    [
      'SIGSTOP beyond the lease',
      async (member) => {
        member.signal('SIGSTOP')
        await delay(6_000)
        member.signal('SIGCONT')
      },
      true,
    ],
    [
      'rolling restart',
      async (member) => {
        await member.end('SIGTERM')
        await member.start()
      },
      true,
    ],
    [
      'partition',
      async (member) => {
        await member.cut()
        await delay(5_000)
        member.heal()
      },
      true,
    ],
    [
      'partition of pairs',
      async () => {
        // One that serves requests and one that does not, each from one peer.
        const isServing = ({ role }: Member) => role === 'api' || role === 'gateway'
        const pairs = [members.filter(isServing), members.filter((one) => !isServing(one))]
          .filter((group) => group.length > 0)
          .map((group) => some(group))
          .map((member) => ({ member, peer: some(member.peers), way: some(ways) }))
        const cuts = pairs.map(({ member: { role }, peer }): Fault => {
          const time = { from: Date.now(), to: Number.POSITIVE_INFINITY }
          return { kind: 'partition', role, peer, ...time }
        })
        faults.push(...cuts)
        for (const { member, peer, way } of pairs) {
          onEvent(`${new Date().toISOString()} cut ${member.name} ${way} ${peer}`)
          await member.cut(peer, way)
        }
        await delay(5_000)
        for (const { member } of pairs) member.heal()
        for (const fault of cuts) fault.to = Date.now()
      },
    ],
    ['PostgreSQL killed', () => database.killDatabase()],
    ['PgBouncer killed', () => bouncer.kill().then(bouncer.start)],
    ['Redis flushed', flush],
    ['Redis killed', () => redis.kill().then(redis.start)],
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
  // Each of them once, and then any of them.
  const first = kinds
    .map((kind) => ({ kind, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ kind }) => kind)
  for (let done = 0; done < least || !isOver(); done++) {
    await delay(pauseMs * (0.5 + random()))
    if (done >= least && isOver()) return
    const [kind, run, isOfOne] = first.pop() ?? some(kinds)
    const member = some(members)
    outcome.counts.disturbances!++
    const fault: Fault = {
      ...{ kind, from: Date.now(), to: Number.POSITIVE_INFINITY },
      role: isOfOne && member.role,
    }
    faults.push(fault)
    await run(member, fault)
    fault.to = Date.now()
    onEvent(`${new Date(fault.from).toISOString()} ${kind} ${isOfOne ? member.name : ''}`)
  }
}
