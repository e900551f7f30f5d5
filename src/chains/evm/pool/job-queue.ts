import type { Clock } from '../../../lib/clock.ts'
import { createBacklog } from './backlog.ts'
import type { Job } from './job.ts'

/** What became of an offer: the job was taken, this job cannot be taken now, or no node has room. */
export type OfferOutcome = 'taken' | 'refused' | 'no room'

/** Jobs that wait until a node has room. */
export type JobQueue = {
  push(job: Job): void
  isEmpty(): boolean
  /** Offers the jobs, oldest first. */
  drain(): void
  /** Removes all jobs. */
  clear(remove: (job: Job) => void): void
}

/** Creates the queue. A job that a node has failed goes before the others: it has waited once already. */
export function createJobQueue(options: {
  clock: Clock
  offer(job: Job, now: number): OfferOutcome
}): JobQueue {
  const backlog = createBacklog<Job>()
  const repeats = createBacklog<Job>()
  let isDraining = false
  let isDrainDue = false
  const isEmpty = () => backlog.size() + repeats.size() === 0

  // A caller may call again from inside of its callback. That call waits for the next turn of the event loop:
  // otherwise thousands of them would nest on the stack.
  const drain = (): void => {
    if (isEmpty()) return
    if (isDraining) {
      if (!isDrainDue) setImmediate(drainAgain)
      isDrainDue = true
      return
    }
    isDraining = true
    try {
      const now = options.clock.now()
      const offer = (job: Job) => options.offer(job, now)
      repeats.drain(offer)
      backlog.drain(offer)
    } finally {
      isDraining = false
    }
  }
  const drainAgain = (): void => {
    isDrainDue = false
    drain()
  }

  return {
    push: (job) => (job.isNew ? backlog : repeats).push(job),
    isEmpty,
    drain,
    clear: (remove) => {
      const take = (job: Job) => {
        remove(job)
        return 'taken' as const
      }
      repeats.drain(take)
      backlog.drain(take)
    },
  }
}
