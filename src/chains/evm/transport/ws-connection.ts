// One WebSocket to a node, and the calls over it. The reader of the `ws` package ends the connection at a message that is too
// large, which would fail every call under way; a filter in front of it drops such a message and fails its call only.

import { isUtf8 } from 'node:buffer'
import type { Duplex } from 'node:stream'
import WebSocket from 'ws'
import { createFrameShortener } from './frame-shortener.ts'
import { type CutMessage, createMessageCutter, idOfCut } from './message-cutter.ts'
import { type OneReply, scanOneReplyInTurns, type WholeOf } from './reply-scanner.ts'
import { cutFactor } from './string-cutter.ts'
import type { Timer, Timers } from './timers.ts'
import {
  badReply,
  lateAfter,
  type TransportCall,
  type TransportFailure,
  type TransportOptions,
  type TransportOutcome,
  toRequestText,
} from './transport.ts'

type Entry = { call: TransportCall; id: number; timer: Timer }

// Calls that wait for the handshake; the others go elsewhere.
const maxEarly = 1_000
// The code that the `ws` package gives the same fault.
const tooLarge = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
// A node that does not read: its calls go to others, instead of into memory.
const maxUnsentBytes = 16 * 1024 * 1024
// A reply that is longer than this many times the limit ends the connection: dropping it would hold up the
// other calls for too long.
const maxDropFactor = 4

// An id is a place plus a multiple of this: the remainder finds the call, the rest shows a late answer.
const slotBits = 2 ** 16

// Answers whose size the transactions of others decide.
const isTrace = (method: string): boolean => /^(?:debug|trace)_/.test(method)
const isLarge = (method: string): boolean =>
  /^txpool_|_(?:getLogs|getFilterLogs|getBlockReceipts|getBlockBy(?:Number|Hash)|call)$/.test(
    method,
  )

/** A connection from its handshake to its end. It does not connect again. */
export type WsConnection = {
  /** A call waits for the handshake. */
  send(call: TransportCall): void
  /** Gives up the idempotent calls that wait for an answer. */
  abandon(detail: string): void
  isOpen(): boolean
  isEnded(): boolean
  /** Whether a message has come; where long strings are left out, its beginning counts as well. */
  hasReceived(): boolean
  /** Ends with the last of the calls that it has. */
  retire(): void
  end(): void
}

/** Connects to a node. */
export function openWsConnection(
  options: TransportOptions & {
    timers: Timers
    /** Longer strings are left out of all messages while they are read, and do not count towards the largest size. */
    longestString?: number
    onOpen(): void
    /** Called with the parsed params of every push of the node. */
    onPush(params: unknown): void
  },
): WsConnection {
  const { timers } = options
  const pending = createPendingCalls<Entry>()
  const early: Entry[] = []
  let stream: Duplex | undefined
  // All frames of one turn of the event loop leave in one write instead of one system call each.
  let isCorked = false
  let isStopped = false
  let isEnded = false
  let isRetired = false
  let wasOpen = false
  let hasReceived = false
  let problem = ''

  const socket = new WebSocket(options.url, {
    headers: options.headers,
    perMessageDeflate: false,
    // Checked once for the whole message instead.
    skipUTF8Validation: true,
    handshakeTimeout: options.connectTimeoutMs,
    // Larger messages do not get this far; see `filterMessages`.
    maxPayload: options.maxReplyBytes,
    followRedirects: false,
  })
  socket.on('upgrade', (response) => {
    stream = response.socket
  })
  socket.on('open', () => {
    if (isStopped) return socket.terminate()
    wasOpen = true
    if (stream)
      filterMessages(stream, options, { onCut: failCut, onEndless: endAsTooLarge, onData })
    options.onOpen()
    for (const { id, call } of early.splice(0)) if (pending.get(id)) write(toRequestText(id, call))
  })
  socket.on('message', (data, isBinary) => {
    onData()
    receive(data as Buffer, isBinary)
  })
  socket.on('error', (error) => {
    problem = 'code' in error ? `${error.code}` : 'handshake refused'
    if (problem === tooLarge) failCut({ head: Buffer.alloc(0), tail: Buffer.alloc(0) })
    // A polite goodbye would wait until the node has sent what is too much.
    socket.terminate()
  })
  socket.on('close', (code) => lose(problem || `closed with ${code}`))

  const onData = (): void => {
    hasReceived = true
  }

  const endAsTooLarge = (head: Buffer): void => {
    if (problem === tooLarge) return
    problem = tooLarge
    failCut({ head, tail: Buffer.alloc(0) })
    socket.terminate()
  }

  /** Fails the call whose reply was dropped; where its id is unknown, the calls that may have had it. */
  const failCut = (message: CutMessage): void => {
    const outcome: TransportFailure = {
      failed: 'too_large',
      detail: `more than ${options.maxReplyBytes} bytes`,
    }
    const id = idOfCut(message)
    const entries = id === undefined ? suspects() : []
    if (id !== undefined) finish(id, outcome)
    for (const entry of entries) finish(entry.id, outcome)
  }

  /** The calls under way that are the likeliest to have a very large reply. */
  const suspects = (): Entry[] => {
    const calls = [...pending.values()]
    const traces = calls.filter(({ call }) => isTrace(call.method))
    const large = traces.length > 0 ? traces : calls.filter(({ call }) => isLarge(call.method))
    return large.length > 0 ? large : calls
  }

  const lose = (reason: string): void => {
    isEnded = true
    stream = undefined
    isCorked = false
    // Before the calls: none of them, and none that waits, is given to this node before it is connected again.
    options.onClose(reason)
    // The call with the large reply has failed already. The others are repeated, here or elsewhere.
    const failed = wasOpen ? (reason === tooLarge ? 'interrupted' : 'closed') : 'connect'
    for (const entry of [...pending.values()]) finish(entry.id, { failed, detail: reason })
  }

  const finish = (id: number, outcome: TransportOutcome): void => {
    const entry = pending.take(id)
    if (!entry) return
    timers.cancel(entry.timer)
    if (isRetired && pending.isEmpty()) socket.terminate()
    entry.call.done(outcome)
  }

  const wholeOf: WholeOf = (id) => pending.get(id)?.call.isWhole

  const receive = (data: Buffer, isBinary: boolean): void =>
    scanOneReplyInTurns(data, wholeOf, (reply) => accept(reply, data, isBinary))

  const accept = (reply: OneReply | undefined, data: Buffer, isBinary: boolean): void => {
    if (!reply) {
      receivePush(data.toString('latin1'))
      return
    }
    // The scanner cuts the result out of the bytes without parsing it: the text is passed on to clients unchanged.
    const { id, ok, raw } = reply
    const isText = !isBinary && isUtf8(data)
    if (!isText) finish(id, badReply('not UTF-8 text'))
    else finish(id, ok ? { ok, result: raw } : { ok, error: raw })
  }

  // An unreadable answer belongs to no call: its call times out.
  const receivePush = (text: string): void => {
    if (!text.includes('"params"')) return
    try {
      options.onPush(JSON.parse(text).params)
    } catch {}
  }

  const write = (text: string): void => {
    if (!isCorked) {
      isCorked = true
      stream?.cork()
      setImmediate(() => {
        isCorked = false
        stream?.uncork()
      })
    }
    socket.send(Buffer.from(text, 'latin1'), { binary: false })
  }

  const unsent: TransportFailure = { failed: 'connect', detail: 'not connected' }

  return {
    send: (call) => {
      const isConnecting = !isEnded && !wasOpen && early.length < maxEarly
      const isReady =
        socket.readyState === WebSocket.OPEN && socket.bufferedAmount <= maxUnsentBytes
      if (!isConnecting && !isReady) {
        setImmediate(() => call.done(unsent))
        return
      }
      const entry: Entry = {
        call,
        id: 0,
        timer: timers.after(call.timeoutMs, () => finish(entry.id, lateAfter(call.timeoutMs))),
      }
      entry.id = pending.add(entry)
      if (isReady) write(toRequestText(entry.id, call))
      else early.push(entry)
    },
    abandon: (detail) => {
      for (const { id, call } of pending.values())
        if (call.idempotent) finish(id, { failed: 'stalled', detail })
    },
    isOpen: () => wasOpen && socket.readyState === WebSocket.OPEN,
    isEnded: () => isEnded || socket.readyState >= WebSocket.CLOSING,
    hasReceived: () => hasReceived,
    retire: () => {
      isRetired = true
      if (pending.isEmpty()) socket.terminate()
    },
    end: () => {
      isStopped = true
      socket.terminate()
    },
  }
}

/** Puts the filters between the socket and the reader of `ws`, which would end the connection. */
function filterMessages(
  duplex: Duplex,
  { maxReplyBytes, longestString }: { maxReplyBytes: number; longestString?: number },
  {
    onCut,
    onEndless,
    onData,
  }: { onCut(message: CutMessage): void; onEndless(head: Buffer): void; onData(): void },
): void {
  const [read, ...others] = duplex.listeners('data')
  // With another version of `ws` the listeners may differ. Then the connection works without the filters, as it does
  // elsewhere; `large-replies.test.ts` would fail.
  if (!read || others.length > 0) return
  const cut = createMessageCutter({
    maxBytes: maxReplyBytes,
    maxDropBytes: maxDropFactor * maxReplyBytes,
    onCut,
    onEndless: ({ head }) => onEndless(head),
  })
  const maxBytes = cutFactor * maxReplyBytes
  const shorten =
    longestString !== undefined &&
    createFrameShortener({ longest: longestString, maxBytes, onData, onEndless })
  duplex.removeAllListeners('data')
  duplex.on('data', (chunk: Buffer) => {
    for (const part of shorten ? shorten(chunk) : [chunk])
      for (const bytes of cut(part)) read.call(duplex, bytes)
  })
}

/** Calls that wait for an answer, found by the id that was sent with them. */
type PendingCalls<call> = {
  add(call: call): number
  get(id: number): call | undefined
  take(id: number): call | undefined
  values(): call[]
  isEmpty(): boolean
}

/**
 * A table with reused places: a Map that constantly loses and gains entries keeps its dead tables
 * alive for long. Ids are never the same twice, so that a late answer finds nothing.
 */
function createPendingCalls<call>(): PendingCalls<call> {
  const calls: (call | undefined)[] = []
  const ids: number[] = []
  const free: number[] = []
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
      return ids[slot]!
    },
    get,
    take: (id) => {
      const slot = id % slotBits
      const call = get(id)
      if (call === undefined) return undefined
      calls[slot] = undefined
      free.push(slot)
      return call
    },
    values: () => calls.filter((call) => call !== undefined),
    isEmpty: () => free.length === calls.length,
  }
}
