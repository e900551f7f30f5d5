import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** A nonce that a correctly signed request carried. */
export type RequestNonce = {
  credential_id: string
  nonce: string
  /** The time that the nonce names. */
  time: Date
  expire_time: Date
  /** The revision of the credential that the request was judged by; any where this is absent. */
  revision?: number
}

/** Leads of credentials that this process has recorded; an entry is small. */
const maxKnown = 10_000

const leadOf = ({ time }: RequestNonce): number => time.getTime() - Date.now()

/** Whether a nonce names a time that the database's clock has not reached. */
export const isAhead = (use: RequestNonce): boolean => leadOf(use) > 1_000

/** Records how far ahead the nonces of credentials are, before they are spent. */
export type NonceLeads = { note(uses: readonly RequestNonce[]): Promise<void> }

/**
 * The clock of a client that is ahead stays ahead. Its nonces are of a later time than a restore that
 * follows them, so `isTrusted` in nonce-memory.ts refuses them for as much longer as this lead.
 * Written only when a lead grows, in steps of five seconds: well-set clocks never write.
 */
export const createNonceLeads = (db: Db): NonceLeads => {
  const known = new Map<string, number>()

  return {
    note: async (uses) => {
      const grown = new Map<string, number>()
      for (const use of uses) {
        const lead = Math.ceil(leadOf(use) / 5_000) * 5_000
        const before = Math.max(
          known.get(use.credential_id) ?? 0,
          grown.get(use.credential_id) ?? 0,
        )
        if (lead > before) grown.set(use.credential_id, lead)
      }
      for (const [credential_id, lead] of grown) {
        await sql`update credential set nonce_lead_ms = ${lead}
          where credential_id = ${credential_id} and coalesce(nonce_lead_ms, 0) < ${lead}`.execute(
          db,
        )
        if (known.size >= maxKnown) known.delete(known.keys().next().value as string)
        known.set(credential_id, lead)
      }
    },
  }
}
