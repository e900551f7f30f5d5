import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

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

/** A port that was free a moment ago. */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  try {
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  } finally {
    server.close()
  }
}
