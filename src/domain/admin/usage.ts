// Usage by day, method and key. Operations and calls of the gateway are counted in the same rows; refused calls are a
// column of their own. Calls are counted here, not cost: a large body is one call and may take more than one from the
// limits.

import { OperationError } from '../../contract/errors/errors.ts'
import { maxCredentials } from '../../contract/limits.ts'
import { listCredentials } from '../../storage/access/credentials.ts'
import { listMethodTotals, listMethodUsage } from '../../storage/access/method-usage.ts'
import { keyHint, sealContext } from '../access/credential-keys.ts'
import type { AdminHandler, Context } from '../context.ts'
import { quantile } from '../overview/metrics.ts'
import { getOrganization } from './organizations.ts'
import { presentQuotas } from './quotas.ts'

// Bounds of an answer: a month by default, and as many rows as a client reads at once.
const dayMs = 86_400_000
const defaultDays = 30
const maxRows = 10_000
const maxMethods = 1_000

/** Counts the calls of an organization, operations and those of the gateway; the last 30 days by default. */
export const GetUsage: AdminHandler<'GetUsage'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { chain } = request
  const rows = await listMethodUsage(context.db, organization_id, {
    ...readDays(context, request),
    chain,
    limit: maxRows,
  })
  const hints = await hintsOf(context, organization_id)
  // A deleted credential has no hint any more; its calls are shown without one.
  const usage = rows.map((row) => ({
    api_key_hint: hints.get(row.credential_id) ?? '',
    chain: row.chain,
    network: row.network,
    method: row.method,
    day: row.day,
    calls: row.call_count,
    errors: row.error_count,
    refused: row.refused_count,
  }))
  return { usage, quotas: await presentQuotas(context, organization_id) }
}

/** Lists the methods of the gateway by calls, errors and latency. */
export const ListMethodUsage: AdminHandler<'ListMethodUsage'> = async (context, request) => {
  const { organization_id } = await getOrganization(context, request.organization_id)
  const { chain, per_key: isPerKey = false } = request
  const rows = await listMethodTotals(context.db, organization_id, {
    ...readDays(context, request),
    ...{ chain, isPerKey, limit: maxMethods },
  })
  const hints = isPerKey ? await hintsOf(context, organization_id) : new Map<string, string>()
  return {
    methods: rows.map((row) => ({
      chain: row.chain,
      network: row.network,
      method: row.method,
      credential_id: row.credential_id ?? '',
      api_key_hint: hints.get(row.credential_id ?? '') ?? '',
      calls: row.call_count,
      errors: row.error_count,
      refused: row.refused_count,
      p50_ms: quantile(row.latency_counts, 0.5),
      p99_ms: quantile(row.latency_counts, 0.99),
    })),
  }
}

function readDays(
  { clock }: Pick<Context, 'clock'>,
  request: { start_day?: string; end_day?: string },
) {
  const to_day = readDay(request.end_day, 'end_day') ?? dayOf(clock.now())
  const from_day =
    readDay(request.start_day, 'start_day') ?? dayOf(Date.parse(to_day) - (defaultDays - 1) * dayMs)
  if (from_day > to_day) throw badDay('start_day', 'Must not be after end_day.')
  return { from_day, to_day }
}

/** The hint of each key. */
async function hintsOf(
  { db, sealer }: Context,
  organization_id: string,
): Promise<Map<string, string>> {
  const rows = await listCredentials(db, organization_id, { limit: maxCredentials })
  return new Map(
    rows.map(({ credential_id, api_key_sealed }) => {
      const key = sealer.open(api_key_sealed, sealContext('api_key', credential_id)).toString()
      return [credential_id, keyHint(key)]
    }),
  )
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

function readDay(day: string | undefined, field: string): string | undefined {
  if (day === undefined) return undefined
  // `Date.parse` accepts 2026-02-31 as a day of March; the comparison refuses it.
  const time = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(time) || dayOf(time) !== day) throw badDay(field, 'Is not a day.')
  return day
}

const badDay = (field: string, detail: string) =>
  new OperationError('INVALID_REQUEST', {
    detail: `${field}: ${detail}`,
    errors: [{ field, reason: 'INVALID_FORMAT', detail }],
  })
