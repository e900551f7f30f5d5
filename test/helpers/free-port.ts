import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { tryListen } from '../../src/lib/net/try-listen.ts'

/**
 * A port for a program that listens on a given port, also after a restart. It is outside of the range from which
 * the system takes ports (32768 and up on Linux), so no connection and no server on "any port" takes it while the program
 * does not listen. The UDP port of the same number keeps other processes of the tests from choosing it; the
 * system releases it with this process.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 1; attempt <= 100; attempt++) {
    // Not 10080, which `fetch` refuses.
    const port = randomInt(10_081, 32_768)
    const claim = createSocket('udp4').unref()
    try {
      claim.bind({ port, address: '127.0.0.1', exclusive: true })
      await once(claim, 'listening')
      if ((await tryListen('127.0.0.1', port)) === undefined) return port
    } catch {
      // Another process has it.
    }
    claim.close()
  }
  throw new Error('no free port')
}
