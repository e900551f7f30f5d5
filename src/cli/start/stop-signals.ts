import type { EventEmitter } from 'node:events'

const signals = ['SIGINT', 'SIGTERM'] as const

// A Ctrl-C reaches every process of the terminal, and npm passes it on to us once more.
const echoMs = 500

/** Calls `first` at the first request to stop and `again` at the next; returns the way to end that. */
export function onStopSignal(
  source: EventEmitter,
  handlers: { first(signal: string): void; again(): void },
  now: () => number = () => performance.now(),
): () => void {
  let asked: number | undefined
  const listeners = signals.map((signal) => {
    const listener = () => {
      if (asked === undefined) {
        asked = now()
        handlers.first(signal)
      } else if (now() - asked > echoMs) handlers.again()
    }
    source.on(signal, listener)
    return () => source.off(signal, listener)
  })
  return () => {
    for (const off of listeners) off()
  }
}
