import type { Catalogue } from '../../src/contract/operations/catalogue.ts'
import type { Service } from '../../src/contract/variant.ts'
import type { Call, CallOptions } from './call.ts'

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

/**
 * The operations as functions. They are made when they are first asked for, because the list of
 * them is in the types only; a newer service's operations can be called as well.
 */
export function createService<service extends Service>(
  call: Call,
  at: string,
): Operations<service> {
  const made: Record<string | symbol, unknown> = Object.create(null)
  const operations = new Proxy(made, {
    get: (_, name) => {
      // Only capitalized names are operations: `await`, JSON.stringify and debuggers ask for others.
      if (typeof name === 'string' && /^[A-Z][A-Za-z0-9]*$/.test(name))
        made[name] ??= (request: unknown, options?: CallOptions) => call(at, name, request, options)
      return made[name]
    },
  })
  return operations as Operations<service>
}
