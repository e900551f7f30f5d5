import { type Cors, createCors } from '../http/clients/cors.ts'
import type { GatewayFront } from '../http/fast-path/gateway-front.ts'
import type { Config } from './config/schema.ts'

const pagesHere = ['http://localhost:*', 'http://127.0.0.1:*']

/** Which pages may call the operations and the gateway; undefined when none may. */
export function openCors(
  config: Config,
  front: GatewayFront,
  developmentRules: boolean,
): Cors | undefined {
  const origins = config.server.cors_origins ?? (developmentRules ? pagesHere : [])
  if (origins.length === 0) return undefined
  const isOpen = (url: string) => url.startsWith('/v1/') || front.find(url, '') !== undefined
  return createCors({ origins, isOpen })
}
