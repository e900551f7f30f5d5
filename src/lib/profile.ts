import { Session } from 'node:inspector/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** What is measured: CPU time, or the allocations of live memory. */
export type ProfileKind = 'cpu' | 'heap'

/**
 * Measures this process for a while, by sampling. A heap snapshot would say more, but it stops the process
 * for seconds and needs as much memory again.
 */
export async function recordProfile(
  kind: ProfileKind,
  { seconds, signal }: { seconds: number; signal: AbortSignal },
): Promise<string> {
  using session = connect()
  const wait = () => delay(seconds * 1000, undefined, { signal, ref: false })
  if (kind === 'cpu') {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await wait()
    return JSON.stringify((await session.post('Profiler.stop')).profile)
  }
  await session.post('HeapProfiler.startSampling', { samplingInterval: 131_072 })
  await wait()
  return JSON.stringify((await session.post('HeapProfiler.stopSampling')).profile)
}

/** Disconnecting ends what is being recorded. */
function connect(): Session & Disposable {
  const session = new Session()
  session.connect()
  return Object.assign(session, { [Symbol.dispose]: () => session.disconnect() })
}
