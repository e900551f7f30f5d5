import { OperationError } from '../contract/errors/errors.ts'

/** Pages of bulk work, which keep a connection of the database and one of its cores busy for 10 to 50 ms. */
export type BulkTurns = {
  /** Records a call of an organization. */
  note(organization_id: string): void
  /**
   * Does a page of work of an organization: at once where it is alone, else one after the other. A first page may be refused. A
   * later one waits until the signal aborts: a refusal says that nothing was done.
   */
  run<result>(
    organization_id: string,
    page: () => Promise<result>,
    later?: AbortSignal,
  ): Promise<result>
}

type Waiting = { start(): void }
type Queue = { running: number; waiting: Set<Waiting> }

/** For so long after a call of another organization, one is not alone. */
const rememberedMs = 2_000
/** Less than the time limit of an operation, and as long as a statement waits for a connection. */
const maxWaitMs = 5_000
/** Each keeps a body in memory. */
const maxWaiting = 200

/**
 * Makes the turns of a process. Beside others an organization has two connections. With bulk work on both, the database used both
 * cores of a small machine for one organization, and the statements of the others waited for each other's time slices: 500 new
 * addresses take it 20 ms. What waits for its turn holds no connection.
 */
export function createBulkTurns(now: () => number = performance.now.bind(performance)): BulkTurns {
  const queues = new Map<string, Queue>()
  let last: string | undefined
  let changed = Number.NEGATIVE_INFINITY

  const mayStart = ({ running }: Queue) => running === 0 || now() - changed > rememberedMs

  const wait = (queue: Queue, later?: AbortSignal): Promise<void> => {
    later?.throwIfAborted()
    if (!later && queue.waiting.size >= maxWaiting) throw tooMuch()
    return new Promise((resolve, reject) => {
      const leave = (error: unknown) => {
        queue.waiting.delete(one)
        reject(error)
      }
      const abort = () => leave(later?.reason)
      later?.addEventListener('abort', abort, { once: true })
      const timer = later ? undefined : setTimeout(() => leave(tooMuch()), maxWaitMs)
      const one = {
        start: () => {
          clearTimeout(timer)
          later?.removeEventListener('abort', abort)
          queue.waiting.delete(one)
          queue.running++
          resolve()
        },
      }
      queue.waiting.add(one)
    })
  }

  const end = (organization_id: string, queue: Queue): void => {
    queue.running--
    for (const next of queue.waiting) {
      if (!mayStart(queue)) return
      next.start()
    }
    if (queue.running === 0) queues.delete(organization_id)
  }

  return {
    note(organization_id) {
      // While two are active they change all the time.
      if (organization_id === last) return
      if (last !== undefined) changed = now()
      last = organization_id
    },
    async run(organization_id, page, later) {
      const queue = queues.get(organization_id) ?? { running: 0, waiting: new Set() }
      queues.set(organization_id, queue)
      if (queue.waiting.size === 0 && mayStart(queue)) queue.running++
      else await wait(queue, later)
      try {
        return await page()
      } finally {
        end(organization_id, queue)
      }
    },
  }
}

const tooMuch = () =>
  new OperationError('RATE_LIMITED', {
    detail: 'Too much bulk work of the organization waits, while others use the service.',
    retryAfter: Math.ceil(maxWaitMs / 1_000),
  })
