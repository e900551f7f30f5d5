import type { Clock } from '../../../lib/clock.ts'
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

/** Calls that wait for a node to have room, the oldest first. */
export type Backlog<job> = {
  size(): number
  push(job: job): void
  /** Offers the jobs in turn until there is no room; one that is taken leaves. */
  drain(offer: (job: job) => 'taken' | 'refused' | 'no room'): void
}

// Jobs with demands of their own must not block all others, nor cost a look at all of them.
const maxRefusals = 64

/** A queue that costs the same however long it is. */
export function createBacklog<job>(): Backlog<job> {
  let jobs: (job | undefined)[] = []
  let first = 0
  let size = 0
  return {
    size: () => size,
    push: (job) => {
      jobs.push(job)
      size++
    },
    drain: (offer) => {
      let refusals = 0
      // What is pushed meanwhile has its turn the next time.
      const end = jobs.length
      for (let at = first; at < end && refusals < maxRefusals; at++) {
        const job = jobs[at]
        if (job === undefined) continue
        const answer = offer(job)
        if (answer === 'no room') break
        if (answer === 'refused') refusals++
        else {
          jobs[at] = undefined
          size--
        }
      }
      while (first < jobs.length && jobs[first] === undefined) first++
      if (first > 1_000 && first * 2 > jobs.length) {
        jobs = jobs.slice(first)
        first = 0
      }
    },
  }
}
