/**
 * Work that clients can cause many times at once, such as opening connections or reading long bodies, divided among turns of
 * the event loop.
 */
export type Turns = {
  /** Acts at once, or in a later turn where the client has caused much in this one. What is expensive costs more than 1. */
  run(client: string, act: () => void, cost?: number): void
  waiting(): number
}

/** How much is done at once and in each later turn; one act at least, whatever it costs. */
const usual = { perClient: 4, perTurn: 8 }

/**
 * Makes the queues, one for each client that waits. Each turn takes from them in rotation, so that a client that opens
 * a hundred connections at once delays its own ones and nothing else.
 */
export function createTurns({ perClient, perTurn } = usual): Turns {
  const queues = new Map<string, { act: () => void; cost: number }[]>()
  const acted = new Map<string, number>()
  let isScheduled = false
  let waiting = 0

  const schedule = () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(turn)
  }
  const note = (client: string, cost: number) => {
    acted.set(client, (acted.get(client) ?? 0) + cost)
    schedule()
  }
  const turn = () => {
    isScheduled = false
    acted.clear()
    let left = perTurn
    for (const [client, queue] of queues) {
      const { act, cost } = queue[0]!
      if (cost > left && left < perTurn) break
      left -= cost
      queue.shift()
      waiting--
      // To the end of the rotation.
      queues.delete(client)
      if (queue.length > 0) queues.set(client, queue)
      note(client, cost)
      act()
      if (left <= 0) break
    }
  }

  return {
    run(client, act, cost = 1) {
      const queue = queues.get(client)
      if (!queue && (acted.get(client) ?? 0) + cost <= perClient) {
        note(client, cost)
        return act()
      }
      if (queue) queue.push({ act, cost })
      else queues.set(client, [{ act, cost }])
      waiting++
      schedule()
    },
    waiting: () => waiting,
  }
}
