import {
  compact,
  fromHex,
  hash256,
  readUint,
  storageKey,
  toHex,
  uint,
  withLength,
} from './bytes.ts'
import type { Code } from './code.ts'
import { inherentsOf } from './inherents.ts'
import { type Changes, createOverlay, type Overlay, type TrieState } from './state.ts'

/** A block with the state after it. */
export type Block = {
  number: number
  hash: string
  parentHash: string
  header: Uint8Array
  extrinsics: readonly Uint8Array[]
  changes: Changes
  state: TrieState
}

/** What a block is made of. */
export type Plan = {
  code: Code
  parent: Block
  para_id: number
  /** The time at which it is made. */
  now: number
  /** How long after its parent it is at least; a slot unless given. */
  leastMs?: number | undefined
  /** Slots left out, by which a block differs from its sibling. */
  skip: number
  goAhead: boolean
}

/** What became of an extrinsic: in the block, not now, or never. */
export type Applied = 'in' | 'later' | 'never'

/** A block that is being made. */
export type Draft = {
  apply(extrinsic: Uint8Array): Applied
  seal(): Block
}

const extrinsicVersion = 4
const unsigned = (call: Uint8Array): Buffer =>
  withLength(Buffer.concat([Uint8Array.of(extrinsicVersion), call]))

/** The time of a block, in milliseconds. */
export const timeOf = (state: Pick<TrieState, 'get'>): number =>
  Number(readUint(state.get(storageKey('Timestamp', 'Now')) ?? new Uint8Array()))

/** Begins a block: the runtime itself does everything that is done in it. */
export function beginBlock({ code, parent, para_id, now, leastMs, skip, goAhead }: Plan): Draft {
  const number = parent.number + 1
  const overlay = createOverlay(parent.state)
  const run = (entry: string, input: Uint8Array = new Uint8Array()) =>
    code.call(entry, input, overlay)
  const before = timeOf(parent.state)
  const { slotMs } = code
  const step = leastMs ?? slotMs
  const earliest = before === 0 ? now : Math.max(now, before + step)
  const isBySlots = step >= slotMs
  const time =
    skip === 0
      ? earliest
      : isBySlots
        ? (Math.floor(earliest / slotMs) + skip) * slotMs
        : earliest + skip * step
  const slot = Math.floor(time / slotMs)
  if (!isBySlots) forgetSlot(overlay, time, slot, slotMs)
  const digest = Buffer.concat([
    Uint8Array.of(4, 6),
    Buffer.from('aura'),
    withLength(uint(slot, 8)),
  ])
  const start = [fromHex(parent.hash), compact(number), new Uint8Array(64), digest]
  run('Core_initialize_block', Buffer.concat(start))
  const included: Uint8Array[] = []

  const apply = (extrinsic: Uint8Array): Applied => {
    overlay.start()
    const result = attempt(() => run('BlockBuilder_apply_extrinsic', extrinsic))
    if (result?.[0] === 0) {
      overlay.commit()
      included.push(extrinsic)
      return 'in'
    }
    overlay.rollback()
    // Invalid for now: a nonce of the future (2), or no room left in the block (6).
    const isForNow = result?.[1] === 0 && (result[2] === 2 || result[2] === 6)
    return isForNow ? 'later' : 'never'
  }

  const outside = { number, time, slot, parentHeader: parent.header, para_id, goAhead }
  for (const call of inherentsOf(code, outside))
    if (apply(unsigned(call)) !== 'in') throw new Error('the runtime refuses its own inherents')

  return {
    apply,
    seal: () => {
      const header = run('BlockBuilder_finalize_block')
      const changes = overlay.changes()
      return {
        number,
        hash: toHex(hash256(header)),
        parentHash: parent.hash,
        header,
        extrinsics: included,
        changes,
        state: parent.state.with(changes),
      }
    },
  }
}

/**
 * Lets a slot have several blocks. The runtime wants a slot of 12 seconds for each: a local chain that makes a block every
 * two seconds would be an hour ahead of the clock after some minutes of traffic. So the runtime finds the time and the slot
 * before this one, whatever its parent had. Such a block cannot be executed again on the state of its parent.
 */
function forgetSlot(overlay: Overlay, time: number, slot: number, slotMs: number): void {
  const lower = (key: string, limit: number) => {
    const stored = overlay.get(key)
    if (stored && Number(readUint(stored)) > limit) overlay.set(key, uint(limit, 8))
  }
  lower(storageKey('Timestamp', 'Now'), time - slotMs)
  lower(storageKey('Aura', 'CurrentSlot'), slot - 1)
  // How many blocks its slot has, in runtimes since 2023.
  overlay.set(storageKey('AuraExt', 'SlotInfo'), null)
}

function attempt(work: () => Uint8Array): Uint8Array | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** Lets the runtime check a whole block, as every node does that imports it; throws if it refuses. */
export function executeBlock(
  code: Code,
  parent: Block,
  { header, extrinsics }: { header: Uint8Array; extrinsics: readonly Uint8Array[] },
): void {
  const body = Buffer.concat([header, compact(extrinsics.length), ...extrinsics])
  code.call('Core_execute_block', body, createOverlay(parent.state))
}
