import { once } from 'node:events'
import { createServer } from 'node:net'

/** Why nobody could listen there now; undefined when one could. */
export async function tryListen(host: string, port: number): Promise<Error | undefined> {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return undefined
  } catch (error) {
    return error as Error
  } finally {
    server.close()
  }
}
