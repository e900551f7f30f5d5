// Memory of filters and subscriptions is counted in terms (addresses and topics), not in filters: one filter with a
// thousand addresses costs as much as a hundred without any. Clients fill it; the bounds per key and per organization hold
// over all networks of the process. Large ones are made in turns of the event loop, which all networks share too.

import { createTurns } from '../../lib/turns.ts'
import type { LogFilter } from '../rpc/check-filter.ts'
import { type Refusal, refuse } from '../rpc/rpc-error.ts'

/** The owner of the used memory. */
export type Owner = { organization_id: string; credential_id: string }

/**
 * What filters and subscriptions of keys and organizations hold, over all networks: without it a few
 * thousand of them with a thousand addresses each would fill the memory of all.
 */
export type FilterBudget = {
  /** Takes room until the returned function is called; a refusal when there is none. */
  take(owner: Owner, terms: number): (() => void) | Refusal
  /**
   * Does one step of making a filter, those of organizations in rotation. One of a large filter has a turn of the event
   * loop. One of a small filter is done at once; where an organization makes many in one turn, the others wait for the next.
   */
  inTurn(organization_id: string, terms: number, act: () => void): void
  /** Terms in use, by key and by organization. */
  used(): { keys: ReadonlyMap<string, number>; organizations: ReadonlyMap<string, number> }
}

/** What a filter or subscription takes beside its addresses and topics: about as much memory. */
export const termsOfOne = 10

/** Larger filters take long: compiling, naming and indexing 1,000 addresses took 1.5 ms in one turn. */
export const smallTerms = 200

/**
 * Addresses and topics that are taken out of the index in one turn of the event loop, and those of all steps of small filters: a
 * batch of 32 with 190 addresses each took 9 ms in one turn.
 */
export const termsPerTurn = 2_000

/** The addresses and topics of a filter as it was given. */
export function termsOf({ address, topics }: LogFilter): number {
  let terms = termsOfOne + lengthOf(address)
  for (const topic of topics ?? []) terms += lengthOf(topic)
  return terms
}

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : value ? 1 : 0)

/** Makes the budget. */
export function createFilterBudget(limits: {
  perKey: number
  perOrganization: number
}): FilterBudget {
  const keys = new Map<string, number>()
  const organizations = new Map<string, number>()
  const large = createTurns({ perClient: 0, perTurn: 1 })
  const small = createTurns({ perClient: termsPerTurn, perTurn: termsPerTurn })

  const refuseBy = (who: 'key' | 'organization', limit: number): Refusal =>
    refuse(
      'TOO_MANY_OPEN',
      `The filters and subscriptions of the ${who} would hold more than ${limit} addresses and topics.`,
      { limit, budget: `filter_terms_per_${who}` },
    )
  const keyIsFull = refuseBy('key', limits.perKey)
  const organizationIsFull = refuseBy('organization', limits.perOrganization)

  const change = (map: Map<string, number>, id: string, terms: number) => {
    const now = (map.get(id) ?? 0) + terms
    if (now > 0) map.set(id, now)
    else map.delete(id)
  }

  return {
    take({ organization_id, credential_id }, terms) {
      if ((keys.get(credential_id) ?? 0) + terms > limits.perKey) return keyIsFull
      if ((organizations.get(organization_id) ?? 0) + terms > limits.perOrganization)
        return organizationIsFull
      change(keys, credential_id, terms)
      change(organizations, organization_id, terms)
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        change(keys, credential_id, -terms)
        change(organizations, organization_id, -terms)
      }
    },
    inTurn: (organization_id, terms, act) =>
      terms > smallTerms ? large.run(organization_id, act) : small.run(organization_id, act, terms),
    used: () => ({ keys, organizations }),
  }
}
