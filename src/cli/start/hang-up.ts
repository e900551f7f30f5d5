import type { EventEmitter } from 'node:events'
import { closeSync, openSync } from 'node:fs'

/** What SIGHUP means. */
export type HangUpHandlers = {
  /** The terminal that the command runs on was closed. */
  closed(): void
  /** An operator asks to read the configuration again. */
  reload(): void
}

/**
 * Listens to SIGHUP, which has two meanings: a closed terminal ends the commands that run on it, and a service reads
 * its configuration again. Returns the way to end that.
 */
export function onHangUp(
  source: EventEmitter,
  handlers: HangUpHandlers,
  isTerminalClosed: () => boolean,
): () => void {
  const listener = () => (isTerminalClosed() ? handlers.closed() : handlers.reload())
  source.on('SIGHUP', listener)
  return () => void source.off('SIGHUP', listener)
}

/** Whether the terminal of this process is gone; false where it never had one. */
export const terminalCheck = (hasTerminal: boolean) => (): boolean => {
  if (!hasTerminal) return false
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}
