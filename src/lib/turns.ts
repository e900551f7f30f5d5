/**
 * Work that clients can cause many times at once, such as opening connections or reading long bodies, divided among turns of
 * the event loop.
 */
export type Turns = {
  /** Acts at once, or in a later turn where the client has caused much in this one. */
  run(client: string, act: () => void): void
  waiting(): number
}

/** How much is done at once and in each later turn. */
const usual = { perClient: 4, perTurn: 8 }

/**
 * Makes the queues, one for each client that waits. Each turn takes from them in rotation, so that a client that opens
 * a hundred connections at once delays its own ones and nothing else.
 */
export function createTurns({ perClient, perTurn } = usual): Turns {
  const queues = new Map<string, (() => void)[]>()
  const acted = new Map<string, number>()
  let isScheduled = false
  let waiting = 0

  const schedule = () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(turn)
  }
  const note = (client: string) => {
    acted.set(client, (acted.get(client) ?? 0) + 1)
    schedule()
  }
  const turn = () => {
    isScheduled = false
    acted.clear()
    for (let left = perTurn; left > 0 && queues.size > 0; left--) {
      const [client, queue] = queues.entries().next().value!
      const act = queue.shift()!
      waiting--
      // To the end of the rotation.
      queues.delete(client)
      if (queue.length > 0) queues.set(client, queue)
      note(client)
      act()
    }
  }

  return {
    run(client, act) {
      const queue = queues.get(client)
      if (!queue && (acted.get(client) ?? 0) < perClient) {
        note(client)
        return act()
      }
      if (queue) queue.push(act)
      else queues.set(client, [act])
      waiting++
      schedule()
    },
    waiting: () => waiting,
  }
}
