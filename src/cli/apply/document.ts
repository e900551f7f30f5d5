// The schema of the document of `portolan apply` (docs/apply.md). It has names and no ids: the same file can be applied to
// several installations. A list that is left out is not managed, an empty one says that there shall be none.

import Type from 'typebox'

// `expects` is what an error message names instead of a JSON Schema.
const text = (expects: string, maxLength = 255) => Type.String({ minLength: 1, maxLength, expects })
const window = Type.Optional(
  Type.Integer({
    minimum: -1,
    maximum: Number.MAX_SAFE_INTEGER,
    expects: 'a count of calls, -1 for unlimited or 0 for blocked',
  }),
)
const quota = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
// The bound of the operations; whether the chain has confirmations at all is known only when its family is.
const confirmation = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }))

const Key = Type.Object({
  name: text('the name of the key'),
  role: Type.Optional(Type.Enum(['admin', 'owner', 'member', 'reader'])),
  scopes: Type.Optional(Type.Array(text('a scope such as `c:read`'), { minItems: 1 })),
  allowed_client_networks: Type.Optional(
    Type.Array(text('a network such as `192.0.2.0/24`'), { minItems: 1 }),
  ),
  expire_time: Type.Optional(text('a time such as `2027-01-31T00:00:00Z`, or `never`')),
})

const Limits = Type.Object({
  per_second_limit: window,
  per_hour_limit: window,
  per_day_limit: window,
  per_month_limit: window,
})

const Quotas = Type.Object({
  wallets: quota,
  addresses: quota,
  webhooks: quota,
  webhook_headers: quota,
  contracts: quota,
  open_transactions: quota,
})

const Contract = Type.Object({
  contract_address: text('the address of a contract'),
  contract_type: Type.Enum(['erc20', 'erc721', 'erc1155']),
})

const Wallet = Type.Object({
  name: text('the name of the wallet'),
  confirmation,
  addresses: Type.Optional(Type.Array(text('an address of the chain'))),
})

const events = Type.Optional(
  Type.Array(Type.Enum(['transfer', 'transaction_state', 'operational', 'installation']), {
    minItems: 1,
  }),
)

const Webhook = Type.Object({
  webhook_endpoint: text('the address of the receiver', 2_048),
  wallet: Type.Optional(text('the name of a wallet; left out, the webhook is for all')),
  confirmation,
  events,
  enabled: Type.Optional(Type.Boolean()),
  headers: Type.Optional(
    // `secret` masks the value in messages; references such as `env:NAME` are resolved when the
    // plan is made.
    Type.Record(Type.String({ pattern: '^[!-~]+$' }), Type.String({ minLength: 1, secret: true }), {
      entry: 'header',
    }),
  ),
})

// Masked in messages; references such as `env:NAME` are resolved when the plan is made.
const credential = Type.Optional(Type.String({ minLength: 1, maxLength: 4_096, secret: true }))

const Sink = Type.Object({
  sink_type: Type.Enum(['nats', 'kafka']),
  servers: Type.Array(text('a host and a port such as `nats.example.org:4222`', 300), {
    minItems: 1,
  }),
  tls: Type.Optional(Type.Boolean()),
  subject_prefix: Type.Optional(text('the first token of the subjects', 100)),
  topic: Type.Optional(text('the topic', 249)),
  username: credential,
  password: credential,
  token: credential,
  sasl_mechanism: Type.Optional(Type.Enum(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])),
  confirmation,
  events,
  enabled: Type.Optional(Type.Boolean()),
})

const Chain = Type.Object({
  contracts: Type.Optional(Type.Array(Contract)),
  wallets: Type.Optional(Type.Array(Wallet)),
  webhooks: Type.Optional(Type.Array(Webhook)),
  sinks: Type.Optional(Type.Array(Sink)),
})

const Organization = Type.Object({
  domain: text('the unique short name of the organization'),
  name: Type.Optional(text('the full name of the organization')),
  enabled: Type.Optional(Type.Boolean()),
  keys: Type.Optional(Type.Array(Key)),
  limits: Type.Optional(
    Type.Record(Type.String({ pattern: '^(?:\\*|[a-z0-9-]+)$' }), Limits, { entry: 'chain' }),
  ),
  quotas: Type.Optional(Quotas),
  chains: Type.Optional(
    Type.Record(Type.String({ pattern: '^[a-z0-9-]+(?:/[a-z0-9-]+)?$' }), Chain, {
      entry: 'chain',
    }),
  ),
})

/** The document of `portolan apply`. What is left out is not managed. */
export const documentSchema = Type.Object({
  organizations: Type.Array(Organization, { minItems: 1 }),
})

/** A checked document. */
export type OrganizationsDocument = Type.Static<typeof documentSchema>

/** One organization of it. */
export type OrganizationPart = OrganizationsDocument['organizations'][number]

/** What it has on one chain. */
export type ChainPart = NonNullable<OrganizationPart['chains']>[string]
