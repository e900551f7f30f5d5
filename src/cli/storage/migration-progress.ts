import type { MigrationProgress } from '../../storage/migrations/migrate.ts'
import { barText, createProgressLine, leftText } from '../progress.ts'
import type { Shell } from '../shell.ts'

type Measured = { what: string; done: number; total: number; unit: string }

/** Shows the steps of a migration with rate and time left, and those of the index that is being built. */
export function createMigrationProgress(
  shell: Pick<Shell, 'stderr' | 'env'>,
  now: () => number = () => performance.now(),
): { report(progress: MigrationProgress): void; done(): void } {
  const line = createProgressLine(shell, now)
  let begun: { what: string; at: number; done: number } | undefined
  return {
    report: (progress) => {
      const { what, done, total, unit } = measure(progress)
      if (begun?.what !== what) begun = { what, at: now(), done }
      const since = begun
      line.show(() => {
        const place = `step ${progress.step + 1}/${progress.steps} ${progress.name}`
        const phase = progress.build ? `: ${progress.build.index}, ${progress.build.phase}` : ''
        if (total === 0) return `${place}${phase}`
        const seconds = (now() - since.at) / 1_000
        const speed = seconds > 0 ? (done - since.done) / seconds : 0
        const rate = `${speed < 10 ? speed.toFixed(1) : Math.floor(speed).toLocaleString('en')} ${unit}/s`
        // The rate comes before the names, which a terminal of 80 columns may cut.
        return `${barText(done / total)}, ${rate}, ${leftText(total - done, speed)}, ${place}${phase}`
      })
    },
    done: line.done,
  }
}

/** What the rate is that of: the phase of a build where the server knows its size, or the steps. */
const measure = ({ build, step, steps }: MigrationProgress): Measured =>
  build
    ? { what: `${build.index} ${build.phase}`, done: build.done, total: build.total, unit: 'units' }
    : { what: 'steps', done: step, total: steps, unit: 'steps' }
