import { isIP, type LookupFunction } from 'node:net'
import { promisify } from 'node:util'
import {
  readServer,
  type SinkCredentials,
  type SinkServer,
  type SinkSettings,
} from '../../domain/sinks/settings.ts'
import type { EndpointRules } from '../../lib/net/endpoint.ts'
import {
  createGuardedLookup,
  ForbiddenAddressError,
  resolverFor,
} from '../webhooks/guarded-lookup.ts'
import type { EventSource, SinkMessage } from './cloud-event.ts'

/** A connection to the broker of a sink. */
export type Publisher = {
  /**
   * Publishes messages and resolves when the broker has acknowledged all. The order within a wallet is kept. After a
   * failure the publisher is not used again, except for a `TooLargeError`: one of the messages is too large.
   */
  publish(messages: readonly SinkMessage[], signal: AbortSignal): Promise<void>
  stop(): Promise<void>
}

/** The broker refuses a message for its size, and will refuse it again. */
export class TooLargeError extends Error {
  override name = 'TooLargeError'
}

/** How to connect to the broker of a sink. */
export type PublisherOptions = {
  source: EventSource
  settings: SinkSettings
  credentials: SinkCredentials
  guard: AddressGuard
  /** For a connection, and for the acknowledgement of one message or request. */
  timeoutMs: number
}

/** Opens a publisher of one kind of broker. */
export type OpenPublisher = (options: PublisherOptions) => Promise<Publisher>

/** Finds out which address a connection may use. */
export type AddressGuard = {
  /** An address of the host. Throws where one of its addresses must not be reached. */
  resolve(host: string): Promise<string>
  /** The same for sockets that look a name up themselves. */
  lookup: LookupFunction
}

/** Applies the rules of webhook endpoints to the servers of sinks, when a connection is made. */
export function createAddressGuard({ reachable }: Pick<EndpointRules, 'reachable'>): AddressGuard {
  const lookup: LookupFunction = (host, options, callback) =>
    createGuardedLookup(reachable, resolverFor(reachable))(host, options, callback)
  const first = promisify<string, string>((host, done) =>
    lookup(host, {}, (error, address) => done(error, address as string)),
  )
  return {
    lookup,
    resolve: async (host) => {
      if (isIP(host) === 0) return await first(host)
      if (!reachable.allows(host)) throw new ForbiddenAddressError('Is not a public address.')
      return host
    },
  }
}

/** A client that cannot be loaded fails its own sink only, and its `last_error` names the reason. */
export const missing = (cause: unknown): never => {
  throw new Error('The client of this broker cannot be loaded: install the packages again.', {
    cause,
  })
}

/** Tries the servers of a sink in their order and gives the first connection. */
export async function connectToAny<connection>(
  { servers }: Pick<SinkSettings, 'servers'>,
  connect: (server: SinkServer) => Promise<connection>,
): Promise<connection> {
  let failure: unknown
  for (const text of servers) {
    try {
      return await connect(readServer(text))
    } catch (error) {
      failure ??= error
    }
  }
  throw failure
}
