// A list of what is recorded, not of what is left out: a field that is added to the contract later is
// not in the log until it is named here.
const recorded: ReadonlySet<string> = new Set([
  'address',
  'allowed_client_networks',
  'asset_type',
  'chain',
  'confirmation',
  'contract_address',
  'contract_type',
  'credential_id',
  'domain',
  'events',
  'expire_time',
  'from',
  'gas',
  'gas_price',
  'header_key',
  'import_asset',
  'is_default',
  'key_id',
  'name',
  'nonce',
  'organization_id',
  'overlap_seconds',
  'per_day_limit',
  'per_hour_limit',
  'per_month_limit',
  'per_second_limit',
  'quota_limit',
  'quota_name',
  'remove_all',
  'remove_expire_time',
  'role',
  'sasl_mechanism',
  'scopes',
  'sink_id',
  'sink_type',
  'start_time',
  'state',
  'subject_prefix',
  'successor_credential_id',
  'tls',
  'to',
  'token_account_address',
  'token_address',
  'token_id',
  'topic',
  'transaction_hash',
  'transaction_id',
  'username',
  'value',
  'wallet_id',
  'webhook_header_id',
  'webhook_history_id',
  'webhook_id',
])

// Bounds of what one event stores. Requests may name a thousand addresses, of which only the number
// is kept.
const longest = 200
const mostItems = 20

/** What an operation was about: the ids and settings that its request and answer name, without secrets. */
export function targetOf(request: unknown, response?: unknown): Record<string, unknown> {
  // As deep as the payload of a token and its standard.
  const asked = collect(request, 3)
  const answered = collect(response, 2)
  // Where both name a field, the request says what was asked for. Another id in the answer is that of what was made.
  const made = Object.entries(answered)
    .filter(([name, id]) => name.endsWith('_id') && (asked[name] ?? id) !== id)
    .map(([name, id]) => [`new_${name}`, id])
  return { ...answered, ...Object.fromEntries(made), ...asked }
}

function collect(
  value: unknown,
  depth: number,
  target: Record<string, unknown> = {},
): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return target
  for (const [name, field] of Object.entries(value)) {
    if (name === 'api_key' && typeof field === 'string') target.api_key_hint = keyHint(field)
    else if (name === 'webhook_endpoint') target.webhook_origin = originOf(field)
    else if (name === 'addresses' && Array.isArray(field)) target.address_count = field.length
    else if (name === 'servers' && Array.isArray(field)) target.servers = keep(field.map(serverOf))
    else if (recorded.has(name)) {
      const kept = keep(field)
      if (kept !== undefined) target[name] = kept
    } else if (depth > 1) collect(field, depth - 1, target)
  }
  return target
}

function keep(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, longest)
  if (typeof value === 'number' || typeof value === 'boolean') return value
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.slice(0, mostItems).map((item) => keep(item) ?? null)
  return undefined
}

/** Enough of a key to identify it, and too little to use it. */
export const keyHint = (api_key: string): string => `${api_key.slice(0, 8)}…`

/** Paths and queries of endpoints often carry a token of the receiver. */
function originOf(endpoint: unknown): string | undefined {
  return typeof endpoint === 'string' && URL.canParse(endpoint)
    ? new URL(endpoint).origin.slice(0, longest)
    : undefined
}

/** A failed request may name a server as a URL with a password in it. */
const serverOf = (server: unknown): string =>
  typeof server === 'string' && /^(\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/.test(server)
    ? server
    : 'not a host and port'
