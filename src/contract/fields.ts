import Type, { type TSchema } from 'typebox'
import { defaultPageSize, maxBatchAddresses, maxPageSize } from './limits.ts'
import { assetTypes, contractTypes, sendableContractTypes } from './records/assets.ts'
import { roles } from './roles.ts'
import { scopePattern } from './scopes.ts'
import { each, only } from './variant.ts'

/** The largest integer that every JSON reader keeps; int64 fields stop here (docs/decisions/requests.md). */
export const maxInteger: number = Number.MAX_SAFE_INTEGER

/** A field that may be left out. */
export const optional = <schema extends TSchema>(schema: schema) => Type.Optional(schema)

/** An optional boolean with its default. */
export const flag = (description: string) =>
  Type.Optional(Type.Boolean({ default: false, description }))

/** Marks a response field beyond the specification. */
export const extension = <schema extends TSchema>(schema: schema): schema =>
  ({ ...schema, 'x-extension': true }) as schema
/** Says what an optional field is when it is left out, where the service works it out. Forms and the reference show it. */
export const leftOut = <schema extends TSchema>(schema: schema, text: string): schema =>
  ({ ...schema, 'x-left-out': text }) as schema

/** Any text. */
export const text = Type.String()
/** An id made by the service or by the caller. */
export const Id = Type.String({ minLength: 1, maxLength: 100 })
/** An int64 field that cannot be negative. */
export const Count = Type.Integer({ minimum: 0, maximum: maxInteger })
/** Unix time in seconds. */
export const UnixTime = Type.Integer({
  minimum: 0,
  maximum: maxInteger,
  description: 'Unix time in seconds, inclusive',
})
/** RFC 3339 in UTC with milliseconds. */
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339 time in UTC with milliseconds',
})
/** An amount: digits only, any size. */
export const Decimal = Type.String({
  pattern: '^(0|[1-9][0-9]*)$',
  maxLength: 100,
  description: 'decimal digits without sign, exponent or leading zeros',
})
/** Bytes as `0x` and an even number of hex digits. */
export const HexData = Type.String({
  pattern: '^0x([0-9a-fA-F]{2})*$',
  description: '0x and two hex digits per byte',
})
/** A 32-byte hash. */
export const Hash = Type.String({
  pattern: '^0x[0-9a-fA-F]{64}$',
  description: '0x and 64 hex digits',
})

/** The address pattern of section 2. */
export const EvmAddress = Type.String({
  pattern: '^0x[a-f0-9]{40}$',
  description: '0x and 40 lower-case hex digits',
})
const TonAddress = Type.String({
  pattern: '^(?:(?:-1|0):[0-9a-fA-F]{64}|[0-9A-Za-z+/_-]{48}|0x[a-f0-9]{40})$',
  description:
    'workchain:hex, the 48-character user-friendly form, or 0x and 40 lower-case hex digits',
})
const SuiAddress = Type.String({
  pattern: '^0x[0-9a-fA-F]{1,64}$',
  description: '0x and 1 to 64 hex digits',
})
const PolkadotAddress = Type.String({
  pattern: '^(?:[1-9A-HJ-NP-Za-km-z]{33,50}|0x[0-9a-fA-F]{64}|0x[a-f0-9]{40})$',
  description: 'an SS58 address, an account id (0x and 64 hex digits), or 0x and 40 hex digits',
})
const PlainAddress = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'an address in any form of the chain',
})

const patternOf = (schema: TSchema) => String((schema as { pattern?: string }).pattern)

/** The longest text of each pattern, for documents; the pattern itself refuses what is longer. */
export const patternLengths: ReadonlyMap<string, number> = new Map([
  [patternOf(Hash), 66],
  [patternOf(EvmAddress), 42],
  [patternOf(TonAddress), 67],
  [patternOf(SuiAddress), 66],
  [patternOf(PolkadotAddress), 66],
])

/** An address input: the chain's own forms, and the EVM pattern (docs/decisions/requests.md). */
export const Address = each({ T: TonAddress, S: SuiAddress, P: PolkadotAddress, C: EvmAddress })
/** The same where it may be left out. */
export const OptionalAddress = each({
  T: optional(TonAddress),
  S: optional(SuiAddress),
  P: optional(PolkadotAddress),
  C: optional(EvmAddress),
})
/** The address of ImportAsset and RefreshAssetBalances: a plain string in T and S (spec 4.3). */
export const AssetAddress = each({
  T: optional(PlainAddress),
  S: optional(PlainAddress),
  P: optional(PolkadotAddress),
  C: optional(EvmAddress),
})
/** Up to 1000 addresses. Each is checked by the chain, so that the error names the bad one. */
const list = <item extends TSchema>(item: item) =>
  Type.Array(item, {
    minItems: 1,
    maxItems: maxBatchAddresses,
    description: `1 to ${maxBatchAddresses} addresses`,
  })
export const Addresses = each({
  T: list(TonAddress),
  S: list(SuiAddress),
  P: list(PolkadotAddress),
  C: list(EvmAddress),
})
/** The same where `remove_all` makes it unnecessary. */
export const OptionalAddresses = each({
  T: optional(list(TonAddress)),
  S: optional(list(SuiAddress)),
  P: optional(list(PolkadotAddress)),
  C: optional(list(EvmAddress)),
})

/** The organization's domain (spec 2.1). */
export const Domain = Type.String({
  minLength: 1,
  maxLength: 50,
  pattern: '^[a-z0-9]+(?:-[a-z0-9]+)*$',
  description: 'lower-case letters and digits, joined by single hyphens',
})
/** A display name of 1 to 50 characters (spec 2.4, 8). */
export const Name = Type.String({ minLength: 1, maxLength: 50 })
/** A chain name in a rate-limit record: a configured chain, `admin`, or `*` for the default. */
export const ChainName = Type.String({
  pattern: '^(?:\\*|[a-z0-9]+(?:-[a-z0-9]+)*)$',
  maxLength: 50,
  description: 'a chain name in lower case, or * for the default of the organization',
})
/** A limit: -1 is unlimited, 0 is blocked. */
export const Limit = Type.Integer({
  minimum: -1,
  maximum: maxInteger,
  description: 'calls in the window; -1 is unlimited, 0 is blocked',
})
/** What a credential may do. */
export const Role = Type.Enum([...roles], {
  description:
    'ROLE_ADMIN operates the installation, ROLE_OWNER its own organization with its credentials, ROLE_MEMBER uses it, ROLE_READER reads it',
})
/** What a credential may be used for. */
export const Scopes = Type.Array(
  Type.String({
    pattern: scopePattern,
    maxLength: 100,
    description:
      '*, c:read, c:write (any service, or * for all), gateway, gateway:c or gateway:c/mainnet, the last three also with :read',
  }),
  { minItems: 1, maxItems: 50, description: '1 to 50 scopes; * is everything' },
)
/** Where a credential may be used from. */
export const ClientNetworks = Type.Array(
  Type.String({
    minLength: 2,
    maxLength: 50,
    description: 'a network such as 192.0.2.0/24 or 2001:db8::/32, or one address',
  }),
  {
    minItems: 1,
    maxItems: 50,
    description: '1 to 50 networks; 0.0.0.0/0 and ::/0 together are everywhere',
  },
)
/** A time in a request; checked further where it is used. */
export const FutureTime = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,3})?Z$',
  description: 'an RFC 3339 time in UTC such as 2027-01-31T00:00:00Z, in the future',
})

/** How many confirmations a balance or a notification waits for. */
export const Confirmation = Type.Integer({
  minimum: 0,
  maximum: 1_000_000,
  description: 'confirmations; 0 and 1 both mean at inclusion',
})
/** The same with the default of section 8, which forms fill in even where the field is required. */
export const Confirmation10 = { ...Confirmation, default: 10 } as typeof Confirmation
/** Reads the current balance from the chain when an address is registered (T, S, P). */
export const ImportFlag = only('TSP', flag('read the current balance from the chain'))

/** The asset types of section 2.7. */
export const AssetType = each({
  T: Type.Enum(assetTypes.t),
  S: Type.Enum(assetTypes.s),
  P: Type.Enum(assetTypes.p),
  C: Type.Enum(assetTypes.c),
})
/** The token standards that can be registered (spec 2.7). */
export const ContractType = Type.Enum(contractTypes)
/** The token standards that CreateTokenTransaction sends (spec 2.7). */
export const SendableContractType = Type.Enum(sendableContractTypes)

/** The token of an asset, where the chain has tokens beside its coin. */
export const TokenAddress = Type.String({
  minLength: 1,
  maxLength: 500,
  description:
    'the jetton master (T), the coin type (S), or the asset (P): the number of one of the pallet Assets, or the location of one of ForeignAssets as SCALE in hex',
})
/** A transaction identifier of any chain. */
export const TransactionId = Type.String({ minLength: 1, maxLength: 100 })

/** A header of webhook deliveries (spec 8). */
export const HeaderKey = Type.String({ minLength: 1, maxLength: 1000 })
/** Its value. */
export const HeaderValue = Type.String({ maxLength: 1000 })
/** Where notifications go. */
export const Endpoint = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'an http or https URL',
})

/** The page fields of every list (spec 8). */
export const page = {
  page_size: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxPageSize,
      default: defaultPageSize,
      description: `1 to ${maxPageSize}`,
    }),
  ),
  page_token: Type.Optional(
    Type.String({ maxLength: 2000, description: 'next_page_token of the page before' }),
  ),
}
/** What a page says of the next one. */
export const Pagination = Type.Object({
  next_page_token: Type.String({
    description:
      'empty on the last page; any other page may have fewer items than `page_size`, or none',
  }),
})
/** The time filter of histories. */
export const timeRange = { start_time: optional(UnixTime), end_time: optional(UnixTime) }
