import type { Service } from '../../src/contract/variant.ts'
import { createCall } from './call.ts'
import { type Clock, systemClock } from './clock.ts'
import { createService, type Operations } from './service.ts'

/** What {@link createClient} takes. */
export type ClientOptions = {
  /** Where the service is, such as `https://portolan.example.com`; a path in it is kept. */
  base_url: string
  api_key: string
  api_secret: string
  /** Used instead of the global fetch. */
  fetch?: typeof fetch
  /** Used instead of the clock of the machine. */
  clock?: Clock
  /** Time for one attempt, answer included; 30,000 unless given. */
  timeout_ms?: number
  /** Further attempts after 429 and 503; 2 unless given, 0 for none. */
  retries?: number
}

/** The services by the letters of their variants. */
type Variants = { C: 'c'; Q: 'q'; T: 't'; S: 's'; P: 'p' }

/** A letter of the variant of a chain: C, Q, T, S or P. */
export type Variant = keyof Variants

/** A client: one set of operations per service, and any other chain by its name. */
export type Client = { readonly [service in Service]: Operations<service> } & {
  /**
   * The operations of a chain of another name, or of another network. Its variant says which operations there are;
   * without one they are those of variant C.
   *
   * @example
   * await client.chain('base').RegisterWallet({ name: 'treasury' })
   * await client.chain<'T'>('ton', { network: 'testnet' }).ListWallets()
   */
  chain<variant extends Variant = 'C'>(
    name: string,
    options?: { network?: string },
  ): Operations<Variants[variant]>
}

/**
 * Makes a client. It opens nothing and holds nothing open.
 *
 * @example
 * const client = createClient({ base_url: 'http://127.0.0.1:8080', api_key, api_secret })
 * const { wallet_id } = await client.c.RegisterWallet({ name: 'treasury' })
 */
export function createClient(options: ClientOptions): Client {
  const { api_key, api_secret, clock = systemClock, timeout_ms = 30_000, retries = 2 } = options
  if (!api_key || !api_secret) throw new TypeError('api_key and api_secret are required')
  const call = createCall({
    base: parseBase(options.base_url),
    api_key,
    api_secret,
    fetch: options.fetch,
    clock,
    timeout_ms,
    retries,
  })
  return {
    admin: createService<'admin'>(call, 'admin'),
    q: createService<'q'>(call, 'q'),
    t: createService<'t'>(call, 't'),
    s: createService<'s'>(call, 's'),
    p: createService<'p'>(call, 'p'),
    c: createService<'c'>(call, 'c'),
    chain: (name, { network } = {}) =>
      createService(
        call,
        [name, network]
          .filter((part) => part !== undefined)
          .map(segment)
          .join('/'),
      ),
  }
}

/** A name that is not one segment of an address would call something else. */
function segment(name: string): string {
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name))
    throw new TypeError(`not a name of a chain or network: ${name}`)
  return name
}

/** A wrong address is said at once, not at the first call. */
function parseBase(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new TypeError(`base_url must be an http or https URL: ${text}`)
  if (url.search || url.hash || url.username || url.password)
    throw new TypeError('base_url must have no query, fragment or credentials')
  return url
}
