/** How long to wait before more is read of bodies that are refused. */
export type DrainPace = (client: string, bytes: number) => number

// At 8 MiB a second the buffers that were read made the whole heap be collected every 1.5 seconds, 60 ms each.
const usual = { bytesPerSecond: 1_048_576, burstBytes: 4_194_304 }
const maxClients = 10_000

/**
 * Bounds the bytes per second that a client can make the service read for nothing. Refused bodies are read to their
 * end, so that clients see the refusal, and what is read has to be collected as garbage.
 */
export function createDrainPace(
  { bytesPerSecond, burstBytes } = usual,
  now: () => number = performance.now.bind(performance),
): DrainPace {
  /** When what was read would have been read at the pace. */
  const paidUntil = new Map<string, number>()
  return (client, bytes) => {
    const time = now()
    const until = Math.max(time, paidUntil.get(client) ?? 0) + (bytes * 1_000) / bytesPerSecond
    // To the end: the first ones are those that were not heard of for the longest time.
    paidUntil.delete(client)
    paidUntil.set(client, until)
    if (paidUntil.size > maxClients) paidUntil.delete(paidUntil.keys().next().value as string)
    return Math.max(0, until - time - (burstBytes * 1_000) / bytesPerSecond)
  }
}
