import { type RawBuilder, sql } from 'kysely'

/**
 * Addresses of one length as one text of hex digits, in documents that name many: with a text for each
 * of them, reading the document cost the server as much as storing it.
 */
export type AddressList = { length: number; addresses: string }

/** The addresses of a list. */
export const addressesIn = ({ length, addresses }: AddressList): Buffer[] => {
  const bytes = Buffer.from(addresses, 'hex')
  return Array.from({ length: bytes.length / length }, (_, place) =>
    bytes.subarray(place * length, (place + 1) * length),
  )
}

/**
 * The lists of a document as a table of a statement: `l.list`, and for each of its addresses
 * `a.address` and `a.place`, counted from zero. `b.blocks` is decoded once per list: decoded per
 * address, the time was quadratic (7 s for 5,000 addresses of one wallet).
 */
export const unfoldLists = (lists: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  jsonb_array_elements(${lists}) l (list)
  cross join lateral (
    select decode(l.list->>'addresses', 'hex') as bytes, (l.list->>'length')::int4 as length,
      decode(l.list->>'blocks', 'hex') as blocks
    offset 0) b
  cross join lateral (
    select place, substr(b.bytes, 1 + place * b.length, b.length) as address
    from generate_series(0, octet_length(b.bytes) / b.length - 1) place) a`
