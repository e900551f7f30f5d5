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
