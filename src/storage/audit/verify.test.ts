import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { genesisHash, hashDetail, hashEvent, isSigned, makeChainKeys, signPlace } from './hash.ts'
import type { AuditEventRow } from './tables.ts'
import { type ChainEnds, verifyChain } from './verify.ts'

const keys = makeChainKeys()

const makeChain = (count: number) => {
  let last = { sequence: 0, hash: genesisHash }
  const events = Array.from({ length: count }, (_, index): AuditEventRow => {
    const detail = JSON.stringify({ client: '192.0.2.7', target: { index } })
    const detail_salt = randomBytes(16)
    const event = {
      sequence: last.sequence + 1,
      event_id: randomUUID(),
      event_time: new Date(1_700_000_000_000 + index),
      actor_type: 'ACTOR_TYPE_CREDENTIAL' as const,
      credential_id: randomUUID(),
      role: 'ROLE_MEMBER' as const,
      principal_organization_id: randomUUID(),
      organization_id: null,
      service: 'c',
      operation: 'RegisterWallet',
      result: 'AUDIT_RESULT_SUCCEEDED' as const,
      reason: null,
      event_count: 1,
      ...{ detail, detail_salt, detail_hash: hashDetail(detail_salt, detail), signature: null },
    }
    const hash = hashEvent(last.hash, event)
    last = { sequence: event.sequence, hash }
    const signature = index % 3 === 2 ? signPlace(keys.private_key, 'head', last) : null
    return { ...event, hash, signature }
  })
  const anchor = { sequence: 0, hash: genesisHash }
  const ends: ChainEnds = {
    public_key: keys.public_key,
    anchor_sequence: 0,
    anchor_hash: genesisHash,
    anchor_time: new Date(0),
    anchor_signature: signPlace(keys.private_key, 'anchor', anchor),
    head_sequence: last.sequence,
    head_hash: last.hash,
    head_time: new Date(0),
    head_signature: signPlace(keys.private_key, 'head', last),
  }
  return { ends, events }
}

async function* from(events: readonly AuditEventRow[]) {
  yield* events
}

const brokenAt = async (
  { ends, events }: ReturnType<typeof makeChain>,
  known: { sequence: number; hash: Buffer }[] = [],
) => (await verifyChain(ends, from(events), known)).broken

describe('a chain of audit events', () => {
  it('verifies when nothing was changed, empty or not', async () => {
    for (const count of [0, 1, 7]) expect(await brokenAt(makeChain(count))).toBeUndefined()
  })

  it('names the first event that was removed, wherever it stood', async () => {
    for (let at = 0; at < 7; at++) {
      const { ends, events } = makeChain(7)
      const rest = events.toSpliced(at, 1)
      const broken = await brokenAt({ ends, events: rest })
      expect(broken).toMatchObject({ sequence: at + 1, problem: /missing/ })
    }
  })

  it('names the event in which any column was changed', async () => {
    const changes: Partial<AuditEventRow>[] = [
      { event_id: randomUUID() },
      { event_time: new Date(1) },
      { actor_type: 'ACTOR_TYPE_SERVICE' },
      { credential_id: null },
      { role: 'ROLE_ADMIN' },
      { principal_organization_id: null },
      { organization_id: randomUUID() },
      { service: 's' },
      { operation: 'RemoveWallet' },
      { result: 'AUDIT_RESULT_FAILED' },
      { reason: 'x' },
      { event_count: 2 },
      { detail: '{}' },
      { detail_salt: randomBytes(16) },
      { detail_hash: randomBytes(32) },
      { hash: randomBytes(32) },
    ]
    for (const change of changes) {
      const { ends, events } = makeChain(5)
      const changed = events.with(3, { ...events[3]!, ...change })
      expect(await brokenAt({ ends, events: changed }), Object.keys(change)[0]).toMatchObject({
        sequence: 4,
      })
    }
  })

  it('verifies after the details of events were erased, and counts them', async () => {
    const { ends, events } = makeChain(4)
    const erased = events.with(1, { ...events[1]!, detail: null, detail_salt: null })
    expect(await verifyChain(ends, from(erased))).toMatchObject({ count: 4, erased: 1 })
    expect((await verifyChain(ends, from(erased))).broken).toBeUndefined()
  })

  it('does not verify when it was made anew without the key', async () => {
    const { ends, events } = makeChain(6)
    // An attacker who has the database but not the master key can compute hashes, and sign with a key of their own.
    let hash = genesisHash
    const forged = events.map((event, index) => {
      const changed = index === 1 ? { ...event, operation: 'ListWallets' } : event
      hash = hashEvent(hash, changed)
      return { ...changed, hash }
    })
    expect(await brokenAt({ ends: { ...ends, head_hash: hash }, events: forged })).toMatchObject({
      sequence: 3,
      problem: /signature/,
    })
    const unsigned = forged.map((event) => ({ ...event, signature: null }))
    expect(await brokenAt({ ends: { ...ends, head_hash: hash }, events: unsigned })).toMatchObject({
      sequence: 6,
      problem: /signature/,
    })
  })

  it('does not take a signed head as the anchor of a removal', async () => {
    const { ends, events } = makeChain(6)
    const third = events[2]!
    const cut = {
      ...ends,
      anchor_sequence: 3,
      anchor_hash: third.hash,
      anchor_signature: third.signature!,
    }
    expect(await brokenAt({ ends: cut, events: events.slice(3) })).toMatchObject({
      sequence: 3,
      problem: /anchor/,
    })
    const place = { sequence: 3, hash: third.hash }
    expect(isSigned(keys.public_key, 'head', place, third.signature!)).toBe(true)
    const anchor_signature = signPlace(keys.private_key, 'anchor', place)
    expect(await brokenAt({ ends: { ...cut, anchor_signature }, events: events.slice(3) })).toBe(
      undefined,
    )
  })

  it('that was cut at a signed event shows only beside a head that was kept', async () => {
    const { ends, events } = makeChain(6)
    const third = events[2]!
    const cut = {
      ends: {
        ...ends,
        head_sequence: 3,
        head_hash: third.hash,
        head_signature: third.signature!,
      },
      events: events.slice(0, 3),
    }
    expect(await brokenAt(cut)).toBeUndefined()
    const kept = { sequence: ends.head_sequence, hash: ends.head_hash }
    expect(await brokenAt(cut, [kept])).toMatchObject({ sequence: 4, problem: /cut/ })
    const other = { sequence: 2, hash: randomBytes(32) }
    expect(await brokenAt(cut, [other])).toMatchObject({ sequence: 2, problem: /differs/ })
  })
})
