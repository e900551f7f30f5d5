import { startBenchDatabase } from './lib/bench-database.ts'
import { type CatchUp, measureCatchUp } from './tracker-catch-up.ts'

/** What the process is to do: to catch up so many times, each time on a new database. */
export type CatchUpTask = {
  binaries: string
  size: Parameters<typeof measureCatchUp>[1]
  times: number
}

/** One message for each time. */
export type CatchUpDone = CatchUp & { version: string }

// A process of its own: what an engine's figure says must not depend on what ran before it.
process.once('message', async ({ binaries, size, times }: CatchUpTask) => {
  for (let left = times; left > 0; left--) {
    const database = await startBenchDatabase(binaries)
    try {
      const spent = await measureCatchUp(database, size)
      process.send?.({ ...spent, version: database.version } satisfies CatchUpDone)
    } finally {
      await database.stop()
    }
  }
  process.disconnect?.()
})
