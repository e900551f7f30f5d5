import { useEffect, useRef } from 'preact/hooks'
import type { LiveEvent } from '../lib/live.ts'
import { useAccount } from './context.ts'

/** Calls the listener for every event while the component is there. */
export function useLive(listener: (event: LiveEvent) => void): void {
  const { live } = useAccount()
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => live.listen((event) => latest.current(event)), [live])
}

/**
 * Calls the action while wanted events arrive, at most once in a while: lists are read again, not per event. It is
 * called after an interruption too.
 */
export function useLiveReload(
  wants: (event: LiveEvent) => boolean,
  action: () => void,
  everyMs = 1_000,
): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useLive((event) => {
    if (timer.current !== undefined || (event.type !== 'ready' && !wants(event))) return
    timer.current = setTimeout(() => {
      timer.current = undefined
      action()
    }, everyMs)
  })
  useEffect(() => () => clearTimeout(timer.current), [])
}
