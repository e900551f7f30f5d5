import type { Client, StreamEvent } from '@portolan/client'
import { type ReadonlySignal, signal } from '@preact/signals'

/** An event of the stream. */
export type LiveEvent = StreamEvent

/** The event stream of all chains, shared by the pages. */
export type Live = {
  state: ReadonlySignal<'connecting' | 'open' | 'broken'>
  /** Calls the listener for every event; returns what ends that. */
  listen(listener: (event: LiveEvent) => void): () => void
  stop(): void
}

/** Opens one stream for all pages. The client reconnects and resumes; what it throws ends the stream. */
export function createLive(client: Client): Live {
  const state = signal<'connecting' | 'open' | 'broken'>('connecting')
  const listeners = new Set<(event: LiveEvent) => void>()
  const stopped = new AbortController()

  const run = async () => {
    try {
      for await (const event of client.events({ signal: stopped.signal })) {
        if (event.type === 'ready') state.value = 'open'
        for (const listener of listeners) listener(event)
      }
    } catch {
      // Pages keep what they have and can be reloaded; the state says that they are not live.
    }
    if (!stopped.signal.aborted) state.value = 'broken'
  }
  void run()

  return {
    state,
    listen: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: () => stopped.abort(),
  }
}
