import type { Principal } from '../domain/access/principal.ts'
import { type Answer, refused } from '../gateway/rpc/answer.ts'
import { refuse } from '../gateway/rpc/rpc-error.ts'
import type { Ids } from '../lib/ids.ts'

/** A call of a filter that another process holds. */
export type FilterCall = {
  /** Of the network: `/c/mainnet`. */
  path: string
  method: string
  args: readonly unknown[]
  principal: Pick<Principal, 'credential_id' | 'organization_id' | 'role'>
}

/** The processes of one service, each of which holds the filters that were created in it. */
export type FilterPeers = {
  /** The number of this process, from 1 to 255. */
  slot: number
  /** Passes a call on to the process with this number. */
  forward(slot: number, call: FilterCall): Promise<Answer>
}

/** The answer where the process of a filter is gone, and with it the filter. */
export const filterGone: Answer = refused(refuse('FILTER_NOT_FOUND', 'filter not found'))

const filterId = /^0x[0-9a-f]{32}$/i

/** Ids whose second byte is the number of the process. */
export const tagIds = (ids: Ids, slot: number): Ids => ({
  ...ids,
  // The first byte stays random. Filter ids are 16 bytes, so the slot costs eight of 128 bits.
  bytes: (size) => {
    const bytes = ids.bytes(size)
    bytes[1] = slot
    return bytes
  },
})

/** The process that holds a filter; undefined for anything that is not the id of a filter. */
export const slotOfFilter = (id: unknown): number | undefined =>
  typeof id === 'string' && filterId.test(id) ? Number.parseInt(id.slice(4, 6), 16) : undefined
