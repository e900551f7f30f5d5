import { once } from 'node:events'
import { createServer } from 'node:net'

/** Why the address cannot be listened on now; undefined when it can. */
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
