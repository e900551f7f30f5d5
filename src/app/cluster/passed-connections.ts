import type { ChildProcess } from 'node:child_process'

/** The messages with which Node's cluster passes a connection and with which a process takes it. */
type Passed = { cmd?: unknown; act?: unknown; seq?: number; ack?: number }

/**
 * Gives connections that a process did not take before it ended to another one. Node's cluster sends a connection and waits
 * for the reply of the process; after the end of that process there is none, and the connection would stay open
 * without a process that serves it. A process replies before it reads: without a reply nothing of the connection was read. Node has no
 * public way to see these messages; `test/cli/workers-handed-over.test.ts` fails should they change.
 */
export function returnPassedConnections(
  child: ChildProcess,
  /** Whether there is another process; without one the connections are closed. */
  { hasOthers }: { hasOthers(): boolean },
): void {
  const passed = new Map<number, { close(): void }>()
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  child.send = (...args: unknown[]) => {
    const { cmd, act, seq } = args[0] as Passed
    if (cmd === 'NODE_CLUSTER' && act === 'newconn' && seq !== undefined)
      passed.set(seq, args[1] as { close(): void })
    return send(...args)
  }
  child.on('internalMessage', ({ ack }: Passed) => {
    if (ack !== undefined) passed.delete(ack)
  })
  let isDisconnected = false
  child.once('disconnect', () => {
    isDisconnected = true
  })
  // It has ended and all its messages are read: what it has taken is known.
  child.once('close', () => {
    // Node waits for the reply with this as well, and its cluster would still count the process.
    if (!isDisconnected) child.emit('disconnect')
    for (const [ack, connection] of passed)
      if (hasOthers()) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false })
      else connection.close()
  })
}
