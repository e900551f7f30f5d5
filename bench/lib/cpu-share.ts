import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const groups = '/sys/fs/cgroup/cpu'
// Short, so that a request waits little for the next one.
const periodMicros = 5_000

/** Whether this machine lets us bound the CPU of a process: control groups of version 1, as root. */
export const canBoundCpu = (): boolean =>
  process.getuid?.() === 0 && existsSync(join(groups, 'cpu.cfs_quota_us'))

/** Gives processes with all their threads together this share of one core and no more. */
export function boundCpu(pids: readonly number[], share: number): { stop(): void } {
  const group = join(groups, `portolan-bench-${pids[0]}`)
  mkdirSync(group)
  const write = (name: string, value: number) => writeFileSync(join(group, name), `${value}`)
  write('cpu.cfs_period_us', periodMicros)
  write('cpu.cfs_quota_us', Math.round(periodMicros * share))
  for (const pid of pids) write('cgroup.procs', pid)
  return {
    stop: () => {
      // Those that they have started since are among them.
      for (const pid of readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n'))
        if (pid !== '') writeFileSync(join(groups, 'cgroup.procs'), pid)
      rmdirSync(group)
    },
  }
}
