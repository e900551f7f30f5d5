// Measures how one tenant's calls and transfers fare beside each kind of abuse by another tenant that stays within the
// default limits of the product.
//
// Set-up, made so that a figure shows the service and not the machine that everything shares here:
// - One process of the service, with its main thread on core 0. The node, this program and the abuser are on core 1. All but the
//   abuser run as soon as they have something to do (real-time policies), the database on what is left of both cores, and
//   the abuser only while nothing else there runs (idle policy): in production each has a machine of its own. A low
//   priority was not enough: the scheduler lets a thread finish its slice of some milliseconds although a more important
//   one waits.
// - The node is a script (`--node scripted`, the default) that does not read long bodies; an emulated anvil would dominate
//   the figures (`--node anvil`).
// - The quiet tenant makes 200 calls a second (ListWallets and eth_getBalance in turn) whether answers come or not, and
//   receives a transfer each second. It and the abuser keep their connections.
// - For each kind `--rounds` windows of `--seconds` alone and beside the abuse alternate, so that whatever else changes on
//   the machine changes both sides. The figure of calls is the median of the p99 of its windows: measured here, the database
//   stood still for 50 ms now and then, on either side, and one such window decided the p99 of all calls together.
//   That one is in the column `pooled`.
// - This program and the node collect their garbage before a window and without helper threads (`steadyFlags`).
// - Each kind begins with a round that does not count: its code is compiled then.
// - A call during which the hypervisor withheld the CPU is in no figure, on either side: measured here, a virtual machine
//   that stood still for 0.9 s gave a p99 of 900 ms without any abuse, and one percent of the time is enough to decide a
//   p99. The figures count these calls. A window in which more than `--steal` percent of one core were withheld is
//   repeated; after `--repeats` of them for one kind the program gives up instead of reporting them.
//
// The ratio is the worst of operations, gateway calls and transfers. Transfers are one in a second, so theirs is the p90,
// from when the service has the block until the webhook has come.
// `--only text,text` chooses kinds by parts of their names, `--profile folder` writes a CPU profile of the
// service for each kind. The figures of a later kind in the same run do not count then. The machine has to be idle otherwise: operations wait for the disk, which nothing here separates.

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { stolenTicks } from '../helpers/stolen-cpu.ts'
import type { Report } from './abuser.ts'
import { type Abuse, abuses, createFund } from './abuses.ts'
import {
  giveTheRest,
  type NoisyService,
  startNoisyService,
  steadyFlags,
  stopChild,
} from './noisy-service.ts'
import { createQuietTenant, type Measured } from './quiet-tenant.ts'

type Figure = {
  abuse: string
  calls: number
  /** The worst of the three that follow. */
  ratio: number
  operations: string
  gateway: string
  transfers: string
  /** The p99 of all windows together, of operations and of gateway calls. */
  pooled: string
  /** Share of the core that the service and the database use, in percent. */
  cpu: string
  failed: number
  /** Windows that were repeated, and calls that do not count, because the hypervisor withheld the CPU. */
  repeated: number
  disturbed: number
  unintended: string
}

/** Of sorted copies; NaN of none. */
const quantile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(times.length * share) - 1)] ?? Number.NaN

const round1 = (ms: number): number => Number(ms.toFixed(1))

type Kind = 'operations' | 'gateway' | 'transfers'

/** The slow ones of all rounds together. */
const pooled = (rounds: readonly Measured[], kind: Kind): number =>
  round1(
    quantile(
      rounds.flatMap((one) => one[kind]),
      kind === 'transfers' ? 0.9 : 0.99,
    ),
  )

/** The slow ones of a round in the middle; of transfers a round has too few. */
const slow = (rounds: readonly Measured[], kind: Kind): number => {
  if (kind === 'transfers') return pooled(rounds, kind)
  const each = rounds.map((one) => quantile(one[kind], 0.99)).sort((a, b) => a - b)
  const half = each.length / 2
  return round1((each[Math.ceil(half) - 1]! + each[Math.floor(half)]!) / 2)
}

/** What shows that the calls of an abuse were not accepted or refused as intended; empty if they were. */
const unintended = ({ must, may = [] }: Abuse, outcomes: object): string[] => [
  ...must.filter((outcome) => !(outcome in outcomes)).map((outcome) => `no ${outcome}`),
  ...Object.keys(outcomes).filter((outcome) => ![...must, ...may].includes(outcome)),
]

const reportOf = async (child: ChildProcess): Promise<Report> => {
  const ended = new AbortController()
  const exit = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`the process of the abuser ended with ${code}`)
  })
  exit.catch(() => {})
  try {
    const [report] = await Promise.race([once(child, 'message', { signal: ended.signal }), exit])
    return report as Report
  } finally {
    ended.abort()
  }
}

type Side = { rounds: Measured[]; service: number; database: number; repeated: number }

const emptySide = (): Side => ({ rounds: [], service: 0, database: 0, repeated: 0 })

/** Measures until a window had the CPU for itself. */
async function measureSide(
  side: Side,
  service: NoisyService,
  measure: () => Promise<Measured>,
): Promise<void> {
  for (; ; side.repeated++) {
    if (side.repeated > repeats)
      throw new Error(`the hypervisor withheld the CPU in ${repeats} windows of one kind`)
    globalThis.gc?.()
    await service.settleNode()
    const [before, stolen] = [await service.cpu(), stolenTicks()]
    const began = performance.now()
    const measured = await measure()
    const [after, stolenNow] = [await service.cpu(), stolenTicks()]
    const seconds = (performance.now() - began) / 1_000
    // A tick is a hundredth of a second, so this is the percentage of one core.
    if ((stolenNow - stolen) / seconds > steal) continue
    side.rounds.push(measured)
    side.service += (100 * (after.service - before.service)) / seconds
    side.database += (100 * (after.database - before.database)) / seconds
    return
  }
}

const figureOf = (
  name: string,
  { alone, beside, outcomes }: { alone: Side; beside: Side; outcomes: object },
): Figure => {
  const kinds = ['operations', 'gateway', 'transfers'] as const
  const times = kinds.map((kind) => [alone, beside].map((side) => slow(side.rounds, kind)))
  const together = (['operations', 'gateway'] as const).map((kind) =>
    [alone, beside].map((side) => pooled(side.rounds, kind)).join(' / '),
  )
  const [operations, gateway, transfers] = times.map((both) => both.join(' / '))
  const share = ({ rounds, service, database }: Side) =>
    `${(service / rounds.length).toFixed(0)}+${(database / rounds.length).toFixed(0)}`
  return {
    abuse: name,
    calls: beside.rounds.reduce((sum, one) => sum + one.operations.length + one.gateway.length, 0),
    ratio: Number(Math.max(...times.map(([before, now]) => now! / before!)).toFixed(2)),
    ...{ operations: operations!, gateway: gateway!, transfers: transfers! },
    pooled: together.join(', '),
    cpu: `${share(alone)} / ${share(beside)}`,
    failed: beside.rounds.reduce((sum, { failed }) => sum + failed, 0),
    repeated: alone.repeated + beside.repeated,
    disturbed: [...alone.rounds, ...beside.rounds].reduce((sum, one) => sum + one.disturbed, 0),
    unintended: unintended(abuses[name]!, outcomes).join(),
  }
}

if (!steadyFlags.every((flag) => process.execArgv.includes(flag))) {
  const args = [...steadyFlags, ...process.argv.slice(1)]
  const again = spawn(process.execPath, args, { stdio: 'inherit' })
  const [code] = await once(again, 'exit')
  process.exit(code ?? 1)
}

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    from: { type: 'string', default: '0' },
    count: { type: 'string', default: '100' },
    only: { type: 'string', default: '' },
    steal: { type: 'string', default: '4' },
    repeats: { type: 'string', default: '40' },
    node: { type: 'string', default: 'scripted' },
    workers: { type: 'string', default: '1' },
    profile: { type: 'string' },
  },
})
const [seconds, rounds, from, count] = [
  ...[Number(values.seconds), Number(values.rounds)],
  ...[Number(values.from), Number(values.count)],
] as [number, number, number, number]
const [steal, repeats] = [Number(values.steal), Number(values.repeats)]
const kinds = Object.keys(abuses)
  .slice(from, from + count)
  .filter((name) => values.only.split(',').some((part) => name.includes(part)))

const recordProfile = async (service: NoisyService, name: string): Promise<void> => {
  const url = `${service.admin_url}/debug/cpu-profile?seconds=${Math.ceil(seconds)}`
  const answer = await fetch(url, { method: 'POST' })
  await mkdir(values.profile!, { recursive: true })
  const file = join(values.profile!, `${name.replaceAll(' ', '-')}.cpuprofile`)
  await writeFile(file, await answer.text())
}

async function runNoisyNeighbours(): Promise<Figure[]> {
  const service = await startNoisyService(
    values.node === 'anvil' ? 'anvil' : 'scripted',
    values.workers,
  )
  const figures: Figure[] = []
  try {
    const { base_url, fund_url } = service
    const quiet = await createQuietTenant(
      base_url,
      await service.create('quiet', 1_000),
      createFund(fund_url),
    )
    // The code is compiled, and the pools are open.
    await quiet.warm()
    await quiet.measure(5)
    for (const [index, name] of kinds.entries()) {
      const abuse = abuses[name]!
      const pair = await service.create(`noisy-${index}`, abuse.perSecond)
      const child = fork(join(import.meta.dirname, 'abuser.ts'), [
        ...[name, base_url, fund_url, JSON.stringify(pair)],
      ])
      await reportOf(child)
      await giveTheRest(child.pid!)
      const [alone, beside] = [emptySide(), emptySide()]
      let outcomes: Report = {}
      const besideAbuse = async (act: () => Promise<unknown>) => {
        child.send('begin')
        await delay(abuse.leadMs ?? 500)
        await act()
        child.send('stop')
        outcomes = await reportOf(child)
        await delay(500)
      }
      await besideAbuse(() => quiet.measure(seconds))
      for (let round = 0; round < rounds; round++) {
        await measureSide(alone, service, () => quiet.measure(seconds))
        await besideAbuse(() => measureSide(beside, service, () => quiet.measure(seconds)))
      }
      if (values.profile !== undefined) {
        await service.share()
        await besideAbuse(() => recordProfile(service, name))
      }
      await stopChild(child, 'SIGKILL')
      figures.push(figureOf(name, { alone, beside, outcomes: outcomes as object }))
      console.log(JSON.stringify({ ...figures.at(-1), outcomes }))
    }
    await quiet.stop()
  } finally {
    await service.stop()
  }
  return figures
}

// The settings of the kernel are restored at the exit.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))
const figures = await runNoisyNeighbours()
console.table(figures)
const bad = figures.filter(
  ({ ratio, failed, unintended }) => unintended !== '' || !(ratio <= 1.5) || failed > 0,
)
if (bad.length > 0)
  throw new Error(`too slow, or not as intended: ${bad.map(({ abuse }) => abuse).join(', ')}`)
