import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/** One client of a stream, as Server-Sent Events. */
export type SseClient = {
  /** Queues an event. A client that does not read is disconnected: it resumes from its last event. */
  send(event: { type: string; id?: string | undefined; text: string }): void
  beat(): void
  /** Resolves when what was sent before has left, or the client has. */
  drained(): Promise<void>
  isOpen(): boolean
  end(): void
}

// The client waits this long before it connects again.
const retryMs = 2_000

/** Begins the answer. */
export function openSse(
  response: ServerResponse,
  { maxBytes, onOverflow }: { maxBytes: number; onOverflow(): void },
): SseClient {
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    // Asks nginx not to gather what is sent.
    'x-accel-buffering': 'no',
  })
  // Events are small and wanted at once; Nagle's algorithm would hold them back.
  response.socket?.setNoDelay(true)
  const isOpen = () => !response.destroyed && !response.writableEnded
  const write = (text: string) => {
    if (!isOpen()) return
    // Judged by what was sent before: one event may be larger than the bound.
    if (response.writableLength <= maxBytes) return void response.write(text)
    onOverflow()
    response.destroy()
  }
  write(`retry: ${retryMs}\n\n`)
  return {
    // The text is JSON and so has no line break.
    send: ({ type, id, text }) =>
      write(`${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${text}\n\n`),
    beat: () => write(': heartbeat\n\n'),
    drained: async () => {
      if (!isOpen() || !response.writableNeedDrain) return
      const left = new AbortController()
      const { signal } = left
      // Whichever comes first; the other listener is removed with the signal.
      await Promise.race([
        once(response, 'drain', { signal }),
        once(response, 'close', { signal }),
      ]).catch(() => {})
      left.abort()
    },
    isOpen,
    end: () => {
      if (isOpen()) response.end()
    },
  }
}
