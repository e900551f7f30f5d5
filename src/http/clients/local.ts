import { isLoopback } from '../../lib/net/loopback.ts'
import type { Exchange } from '../exchange.ts'

/** Whether a request comes from this machine. A proxy here forwards requests from elsewhere. */
export function isLocal({ request }: Exchange): boolean {
  const { headers, socket } = request
  return (
    isLoopback(socket.remoteAddress ?? '') &&
    !('x-forwarded-for' in headers) &&
    !('forwarded' in headers)
  )
}
