import { createCall } from './call.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Service } from './contract.ts'
import type { EventsOptions, StreamEvent } from './event.ts'
import { createEvents } from './events.ts'
import { createNonces } from './nonces.ts'
import { createService, type Events, type Operations } from './service.ts'
import { createSign } from './sign.ts'

/** What {@link createClient} takes. */
export type ClientOptions = {
  /** Where the service is, such as `https://portolan.example.com`; a path in it is kept. */
  base_url: string
  api_key: string
  /** The secret, or a key of {@link importSecret}. */
  api_secret: string | CryptoKey
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
export type Client = { readonly admin: Operations<'admin'> } & {
  readonly [service in Exclude<Service, 'admin'>]: ChainClient<service>
} & {
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
  ): ChainClient<Variants[variant]>
  /**
   * The events of all chains in one connection. The `id` of an event has the positions of all of them.
   *
   * @example
   * for await (const event of client.events({ chains: ['c', 't'], signal }))
   *   if (event.type === 'transfer') console.log(event.chain, event.data.transfers)
   */
  events(
    options?: EventsOptions & { chains?: readonly string[] },
  ): AsyncGenerator<StreamEvent, void>
}

/** The operations of a chain and its events. */
export type ChainClient<service extends Service> = Operations<service> & Events<service>

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
  const connection = {
    base: parseBase(options.base_url),
    api_key,
    api_secret,
    fetch: options.fetch,
    clock,
    timeout_ms,
    retries,
  }
  const signing = { nonces: createNonces(clock.now), sign: createSign(api_secret) }
  const call = createCall(connection, signing)
  const open = createEvents(connection, signing)
  return {
    admin: createService<'admin'>(call, open, 'admin'),
    q: createService<'q'>(call, open, 'q'),
    t: createService<'t'>(call, open, 't'),
    s: createService<'s'>(call, open, 's'),
    p: createService<'p'>(call, open, 'p'),
    c: createService<'c'>(call, open, 'c'),
    chain: (name, { network } = {}) =>
      createService(
        call,
        open,
        [name, network]
          .filter((part) => part !== undefined)
          .map(segment)
          .join('/'),
      ),
    events: (options = {}) => open('', options),
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
