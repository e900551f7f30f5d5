import { type Client, PortolanError, type StreamEvent } from '@portolan/client'
import { type ReadonlySignal, signal } from '@preact/signals'

/** An event of the stream. */
export type LiveEvent = StreamEvent

/** The event stream of all chains, shared by the pages. */
export type Live = {
  state: ReadonlySignal<'connecting' | 'open' | 'broken'>
  /**
   * Calls the listener for every event; returns what ends that. `ready` comes only after an interruption: what a page
   * shows may be old then.
   */
  listen(listener: (event: LiveEvent) => void): () => void
  stop(): void
}

/** Events are passed on together, so that a busy chain costs a few renderings a second and not one per event. */
const togetherMs = 100
/** A hidden page has slow timers: so many events are passed on at once. */
const maxTogether = 1_000

/** Opens one stream for all pages. The client reconnects and resumes; what it throws is passed on. */
export function createLive(client: Client, onRefused: (error: PortolanError) => void): Live {
  const state = signal<'connecting' | 'open' | 'broken'>('connecting')
  const listeners = new Set<(event: LiveEvent) => void>()
  const stopped = new AbortController()
  let isResumed = false
  let waiting: LiveEvent[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const passOn = () => {
    clearTimeout(timer)
    timer = undefined
    const events = waiting
    waiting = []
    for (const event of events) for (const listener of listeners) listener(event)
  }
  const on_interrupt = () => {
    isResumed = true
    state.value = 'connecting'
  }

  const follow = async () => {
    for await (const event of client.events({ signal: stopped.signal, on_interrupt })) {
      if (event.type === 'ready') {
        state.value = 'open'
        if (!isResumed) continue
      }
      waiting.push(event)
      if (waiting.length >= maxTogether) passOn()
      else timer ??= setTimeout(passOn, togetherMs)
    }
  }
  const run = async () => {
    while (!stopped.signal.aborted)
      try {
        await follow()
      } catch (error) {
        if (error instanceof PortolanError && error.reason === 'EVENTS_EXPIRED') {
          // The computer slept for longer than events are kept: from now on, and the pages are read again.
          on_interrupt()
          continue
        }
        if (error instanceof PortolanError) onRefused(error)
        // Pages keep what they have; the state says that they are not live.
        state.value = 'broken'
        return
      }
  }
  void run()

  return {
    state,
    listen: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: () => {
      clearTimeout(timer)
      stopped.abort()
    },
  }
}
