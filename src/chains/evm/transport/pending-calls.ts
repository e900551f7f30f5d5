/** Calls that wait for an answer, found by the id that was sent with them. */
export type PendingCalls<call> = {
  add(call: call): number
  get(id: number): call | undefined
  take(id: number): call | undefined
  values(): call[]
  size(): number
}

// An id is a place plus a multiple of this: the remainder finds the call, the rest shows a late answer.
const slotBits = 2 ** 16

/**
 * A table with reused places: a Map that constantly loses and gains entries keeps its dead tables
 * alive for long. Ids are never the same twice, so that a late answer finds nothing.
 */
export function createPendingCalls<call>(): PendingCalls<call> {
  const calls: (call | undefined)[] = []
  const ids: number[] = []
  const free: number[] = []
  let size = 0
  const get = (id: number): call | undefined => {
    const slot = id % slotBits
    return ids[slot] === id ? calls[slot] : undefined
  }
  return {
    add: (call) => {
      let slot = free.pop()
      if (slot === undefined) {
        slot = calls.length
        calls.push(undefined)
        ids.push(slot)
      }
      calls[slot] = call
      ids[slot] = ids[slot]! + slotBits
      size++
      return ids[slot]!
    },
    get,
    take: (id) => {
      const slot = id % slotBits
      const call = get(id)
      if (call === undefined) return undefined
      calls[slot] = undefined
      free.push(slot)
      size--
      return call
    },
    values: () => calls.filter((call) => call !== undefined),
    size: () => size,
  }
}
