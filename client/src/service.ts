import type { Call, CallOptions } from './call.ts'
import type { Catalogue, Service } from './contract.ts'
import type { EventOf, EventsOptions } from './event.ts'
import type { OpenEvents } from './events.ts'

/** One operation. The request may be left out where no field of it is required. */
export type OperationCall<request, response> =
  Partial<request> extends request
    ? (request?: request, options?: CallOptions) => Promise<response>
    : (request: request, options?: CallOptions) => Promise<response>

/** The operations of one service, with the fields that they have there. */
export type Operations<service extends Service> = {
  readonly [name in keyof Catalogue<service>]: OperationCall<
    Catalogue<service>[name]['request'],
    Catalogue<service>[name]['response']
  >
}

/** The events of one service. */
export type Events<service extends Service> = {
  /**
   * Iterates over events until the signal ends it. It connects again by itself and resumes after the last event.
   *
   * @example
   * for await (const event of client.c.events({ after: 42 }))
   *   if (event.type === 'transfer') console.log(event.sequence, event.data.transfers)
   */
  events(options?: EventsOptions): AsyncGenerator<EventOf<service>, void>
}

/**
 * The operations as functions. They are made when they are first asked for, because the list of
 * them is in the types only; a newer service's operations can be called as well.
 */
export function createService<service extends Service>(
  call: Call,
  open: OpenEvents,
  at: string,
): Operations<service> & Events<service> {
  const made: Record<string | symbol, unknown> = Object.create(null)
  made.events = (options: EventsOptions = {}) => open(at, options)
  const operations = new Proxy(made, {
    get: (_, name) => {
      // Only capitalized names are operations: `await`, JSON.stringify and debuggers ask for others.
      if (typeof name === 'string' && /^[A-Z][A-Za-z0-9]*$/.test(name))
        made[name] ??= (request: unknown, options?: CallOptions) => call(at, name, request, options)
      return made[name]
    },
  })
  return operations as Operations<service> & Events<service>
}
