// A list of what is recorded, not of what is left out: a field that is added to the contract later is
// not in the log until it is named here.
const recorded: ReadonlySet<string> = new Set([
  'address',
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
  'header_key',
  'key_id',
  'name',
  'nonce',
  'organization_id',
  'per_day_limit',
  'per_hour_limit',
  'per_month_limit',
  'per_second_limit',
  'remove_all',
  'role',
  'state',
  'to',
  'token_address',
  'transaction_hash',
  'transaction_id',
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
  const target: Record<string, unknown> = {}
  collect(target, response, 2)
  // The request last: where both name a field, it says what was asked for.
  collect(target, request, 1)
  return target
}

function collect(target: Record<string, unknown>, value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  for (const [name, field] of Object.entries(value)) {
    if (name === 'api_key' && typeof field === 'string') target.api_key_hint = keyHint(field)
    else if (name === 'webhook_endpoint') target.webhook_origin = originOf(field)
    else if (name === 'addresses' && Array.isArray(field)) target.address_count = field.length
    else if (recorded.has(name)) {
      const kept = keep(field)
      if (kept !== undefined) target[name] = kept
    } else if (depth > 1) collect(target, field, depth - 1)
  }
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
