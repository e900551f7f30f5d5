import type { Duplex } from 'node:stream'

/** What waits for a client that does not read fast enough. */
export type Outbox = {
  /** An answer: it is not counted, but its bytes are. */
  answer(frame: Buffer): void
  notify(frame: Buffer): void
  /** Keeps notifications back until as many calls of `release`; answers pass. */
  hold(): void
  release(): void
  /** Notifications that the kernel has not taken yet. */
  waiting(): number
  bytes(): number
  /** Bytes that the kernel has taken since this was last asked. */
  hasMoved(): boolean
  /** Discards what waits and takes nothing more. */
  close(): void
}

type Entry = { frame: Buffer; isNotification: boolean }

const nothing = Buffer.alloc(0)
// A client that catches up must not keep the others waiting.
const writesPerTurn = 64

/**
 * Writes frames to a socket. One frame at most is in the hands of the stream when the kernel takes no
 * more; the rest waits here, so that it can be counted exactly (spec 6.2.3) and discarded. While the
 * kernel keeps up nothing is queued and no callback is made for a frame.
 */
export function createOutbox(
  socket: Duplex,
  options: {
    maxNotifications: number
    maxBytes: number
    /** Called once, when a bound is reached. */
    onOverflow(reason: string): void
    /** Called when everything that waited was taken. */
    onEmpty(): void
  },
): Outbox {
  const { maxNotifications, maxBytes, onOverflow, onEmpty } = options
  // Undefined while nothing waits, which is the usual case and allocates nothing.
  let queue: Entry[] | undefined
  let next = 0
  let held: Buffer[] | undefined
  let holds = 0
  /** Notifications in the queue and among those held back. */
  let count = 0
  let bytes = 0
  let inFlight: Entry | undefined
  let hasMoved = false
  let isClosed = false

  const isBusy = () => inFlight !== undefined || queue !== undefined

  const write = (frame: Buffer, isNotification: boolean) => {
    socket.write(frame)
    // Only what the kernel did not take at once is still there.
    if (socket.writableLength > 0) inFlight = { frame, isNotification }
    else hasMoved = true
  }

  const onTaken = () => {
    inFlight = undefined
    hasMoved = true
    drain()
  }

  /** Learns when the frame in flight is taken, at the price of an empty write. */
  const waitForSocket = () => socket.write(nothing, onTaken)

  // In turns of `writesPerTurn` frames, so that a client with a long queue does not keep the event
  // loop.
  const drain = () => {
    for (let left = writesPerTurn; queue && !isClosed; left--) {
      if (left === 0) return void setImmediate(drain)
      const entry = queue[next++]
      if (!entry) {
        queue = undefined
        next = 0
        onEmpty()
        return
      }
      // Long queues are emptied in steps, so that what was sent does not stay in memory.
      if (next === 1_024) {
        queue = queue.slice(next)
        next = 0
      }
      if (entry.isNotification) count--
      bytes -= entry.frame.length
      write(entry.frame, entry.isNotification)
      if (inFlight) return void waitForSocket()
    }
  }

  const overflow = (reason: string) => {
    close()
    onOverflow(reason)
  }

  const enqueue = (frame: Buffer, isNotification: boolean) => {
    if (!queue) {
      queue = []
      if (inFlight) waitForSocket()
    }
    queue.push({ frame, isNotification })
    bytes += frame.length
    if (isNotification) count++
    check()
  }

  const waiting = () => count + (inFlight?.isNotification ? 1 : 0)

  const check = () => {
    if (waiting() >= maxNotifications)
      overflow(`${maxNotifications} notifications were not read in time`)
    else if (bytes > maxBytes) overflow(`more than ${maxBytes} bytes were not read in time`)
  }

  const send = (frame: Buffer, isNotification: boolean) => {
    if (isClosed) return
    // The kernel took the last frame meanwhile, and no callback was asked for.
    if (inFlight && socket.writableLength === 0 && !queue) inFlight = undefined
    if (isBusy()) enqueue(frame, isNotification)
    else if (socket.writableLength > 0) {
      // Something else is under way, a pong for instance.
      inFlight = { frame: nothing, isNotification: false }
      enqueue(frame, isNotification)
    } else write(frame, isNotification)
  }

  const close = () => {
    // Frames that wait are dropped; one in the hands of the stream is still written.
    isClosed = true
    queue = undefined
    held = undefined
    next = 0
    count = 0
    bytes = 0
  }

  return {
    answer: (frame) => send(frame, false),
    notify(frame) {
      if (isClosed) return
      if (holds === 0) return send(frame, true)
      held ??= []
      held.push(frame)
      count++
      bytes += frame.length
      check()
    },
    hold() {
      holds++
    },
    release() {
      if (--holds > 0 || !held) return
      const frames = held
      held = undefined
      for (const frame of frames) {
        count--
        bytes -= frame.length
        send(frame, true)
      }
    },
    waiting,
    bytes: () => bytes,
    hasMoved() {
      const moved = hasMoved
      hasMoved = false
      return moved || (!isBusy() && socket.writableLength === 0)
    },
    close,
  }
}
