// One file per section of the configuration: its schema with the description, the default and the bounds of
// every key. It uses `typebox` and the helpers of `app/config` only. `docs/configuration.md`, the example
// file, the JSON schema and the error messages derive from these schemas, so a key cannot be undocumented.

import Type, { type TSchema } from 'typebox'
import { isLiteServer } from '../lite-server-text.ts'
import type { Finding } from '../problem.ts'
import { shownWord } from '../problem.ts'
import { evm, polkadot, query, sui, ton } from './families.ts'

/** The variants of the specification by their letter, with the service whose operations a chain then offers. */
export const variantServices = { C: 'c', Q: 'q', T: 't', S: 's', P: 'p' } as const

/** The letter of a variant. */
export type Variant = keyof typeof variantServices

/** The names that are variants by default: `c` is a chain of variant C. */
const tagVariants: Readonly<Record<string, Variant>> = { c: 'C', q: 'Q', t: 'T', s: 'S', p: 'P' }

const oneNode = (kind: string, url: string) => ({
  kind,
  networks: { mainnet: { upstreams: [{ url }] } },
})

/** The settings of a chain of the EVM family; `record_pending` where it offers the chain queries. */
export type EvmSettings = Type.Static<ReturnType<typeof evm>> & { record_pending?: boolean }

/** The settings of a chain of TON. */
export type TonSettings = Type.Static<typeof ton>

/** The settings of a chain of any family, distinguished by `kind`. */
export type ChainSettings =
  | EvmSettings
  | TonSettings
  | Type.Static<typeof sui>
  | Type.Static<typeof polkadot>

/** The chains of a configuration by their names. */
export type ChainsSettings = { readonly [name: string]: ChainSettings }

/** Names of chains: one segment of an address. */
const chainName = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

// `admin` is a service of its own, and scopes such as `gateway:read` would be ambiguous.
const reservedNames: ReadonlySet<string> = new Set(['admin', 'gateway'])

/** The variants that a chain offers. */
export const variantsOf = (
  name: string,
  { variant, variants }: { variant?: Variant; variants?: readonly Variant[] },
): readonly Variant[] => {
  const fallback = variant ?? tagVariants[name]
  return variants ?? (fallback ? [fallback] : [])
}

/** Letters of the variants of each chain, as far as a raw configuration names them. */
export type VariantsByName = ReadonlyMap<string, readonly string[]>

/** Reads which chains a configuration names and of which variants they are, before it is checked. */
export const readVariants = (chains: unknown): VariantsByName => {
  const found = new Map<string, readonly string[]>()
  if (typeof chains !== 'object' || chains === null) return found
  for (const [name, chain] of Object.entries(chains)) {
    const { variant, variants } = (chain ?? {}) as { variant?: unknown; variants?: unknown }
    const letters = Array.isArray(variants) ? variants : [variant ?? tagVariants[name]]
    found.set(
      name,
      letters.filter((letter) => typeof letter === 'string'),
    )
  }
  return found
}

const tags = {
  c: Type.Optional(evm('Variant C: wallets, transactions, contracts and the gateway.')),
  q: Type.Optional(query('The query chain Q, and its gateway.')),
  t: Type.Optional(ton),
  s: Type.Optional(sui),
  p: Type.Optional(polkadot),
}

const family = (letters: readonly string[]): TSchema => {
  if (letters.includes('T')) return ton
  if (letters.includes('S')) return sui
  if (letters.includes('P')) return polkadot
  return letters.includes('Q')
    ? query('A chain of the EVM family.')
    : evm('A chain of the EVM family.')
}

/**
 * The section for a configuration that names these chains. A name other than `c`, `q`, `t`, `s` and `p` gets the
 * keys of the family that its variant belongs to, so that each mistake is reported at its own key.
 */
export const chainsSection = (named: VariantsByName = new Map()) =>
  Type.Object(
    {
      ...tags,
      ...Object.fromEntries(
        [...named].map(([name, letters]) => [name, Type.Optional(family(letters))]),
      ),
    },
    {
      description:
        'The chains by their names: the first segment of their addresses. `c`, `q`, `t`, `s` and `p` are of the variant of that letter; any other name (lower-case letters, digits and dashes) says its `variant`. A chain that is not listed is not served.',
      example: {
        c: {
          networks: {
            mainnet: { upstreams: [{ url: 'http://127.0.0.1:8545' }] },
            ropsten: { upstreams: [{ url: 'http://127.0.0.1:18545' }] },
          },
        },
        q: oneNode('evm', 'http://127.0.0.1:28545'),
        t: oneNode('ton', 'http://127.0.0.1:8081/api/v2'),
        s: oneNode('sui', 'http://127.0.0.1:9000'),
        p: oneNode('polkadot', 'ws://127.0.0.1:9944'),
      },
    },
  )

/** The rules between the keys of each chain. */
export const chainsRules = (chains: ChainsSettings): Finding[] =>
  Object.entries(chains).flatMap(([name, chain]) => [
    ...nameRules(name),
    ...variantRules(name, chain),
    ...grpcRules(name, chain),
    ...liteServerRules(name, chain),
    ...(Object.hasOwn(chain.networks, chain.default_network)
      ? []
      : [
          {
            path: ['chains', name, 'default_network'],
            must: `be one of the networks of the chain (${Object.keys(chain.networks).map(shownWord).join(', ')})`,
            value: chain.default_network,
          },
        ]),
  ])

const nameRules = (name: string): Finding[] => {
  const path = ['chains', name]
  if (!chainName.test(name) || name.length > 64)
    return [{ path, must: 'have a name of lower-case letters and digits with dashes between them' }]
  return reservedNames.has(name) ? [{ path, must: 'have another name: this one is reserved' }] : []
}

const variantRules = (name: string, { variant, variants }: ChainSettings): Finding[] => {
  if (variant !== undefined && variants !== undefined)
    return [{ path: ['chains', name, 'variants'], must: 'not be given beside `variant`' }]
  if (variants && new Set(variants).size < variants.length)
    return [{ path: ['chains', name, 'variants'], must: 'not name a variant twice' }]
  if (variantsOf(name, { ...(variant && { variant }), ...(variants && { variants }) }).length === 0)
    return [{ path: ['chains', name, 'variant'], must: 'be given: one of C, Q, T, S, P' }]
  return []
}

// A path or a query is where some providers want their token. gRPC would drop it, so that every request fails.
const grpcRules = (name: string, chain: ChainSettings): Finding[] => {
  if (chain.kind !== 'sui') return []
  return Object.entries(chain.networks).flatMap(([network, { upstreams }]) =>
    upstreams.flatMap(({ url, transport }, index): Finding[] => {
      const { pathname = '', search = '' } = URL.parse(url) ?? {}
      const isDropped = search !== '' || (transport === 'grpc' && /[^/]/.test(pathname))
      // A reference to a secret is checked when it is read.
      if (!/^https?:/.test(url) || !isDropped) return []
      const path = ['chains', name, 'networks', network, 'upstreams', index, 'url']
      return [
        {
          path,
          must: 'have no path with native gRPC, and no query: send a token with `headers`, or use `transport: grpc-web` for a path',
        },
      ]
    }),
  )
}

// A lite server has another protocol and a key, and only lite servers give proofs.
const liteServerRules = (name: string, chain: ChainSettings): Finding[] => {
  if (chain.kind !== 'ton') return []
  return Object.entries(chain.networks).flatMap(([network, settings]) => {
    const { upstreams, verification, global_config } = settings
    const at = ['chains', name, 'networks', network]
    if (upstreams.length === 0 && global_config === undefined)
      return [
        {
          path: [...at, 'upstreams'],
          must: 'have at least 1 item where there is no `global_config`',
        },
      ]
    const ofNodes = upstreams.flatMap(({ url, kind, key }, index): Finding[] => {
      const isLite = kind === 'liteserver'
      const path = [...at, 'upstreams', index]
      // A reference to a secret is checked when it is read.
      if (/^(?:file|env):/.test(url) || (isLite && isLiteServer(url))) return []
      if (isLite && key === undefined)
        return [{ path: [...path, 'key'], must: 'be given with `kind: liteserver`' }]
      if (isLite === /^tcp:\/\/[^/]+:[0-9]+$/.test(url) && !isLiteServer(url)) return []
      const must = isLite
        ? 'be `tcp://host:port` or `host:port:key` with `kind: liteserver`'
        : 'start with `http://` or `https://`; a lite server needs `kind: liteserver`'
      return [{ path: [...path, 'url'], must }]
    })
    const isProvable =
      verification !== 'full' || upstreams.every(({ kind }) => kind === 'liteserver')
    return isProvable
      ? ofNodes
      : [
          ...ofNodes,
          { path: [...at, 'verification'], must: 'be `structural`: only lite servers give proofs' },
        ]
  })
}
