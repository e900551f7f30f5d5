import { Twox64Concat } from '@polkadot-api/substrate-bindings'
import { storageKey, toHex, uint, withLength } from './bytes.ts'
import type { Code } from './code.ts'
import { insert, nibblesOf, rootOf, type Trie } from './trie.ts'

/** What a block says of the world outside. */
export type Outside = {
  number: number
  /** Milliseconds since the Unix epoch. */
  time: number
  slot: number
  parentHeader: Uint8Array
  para_id: number
  /** The relay chain lets the code that waits be applied. */
  goAhead: boolean
}

// The relay chain's limits for its parachains, in the order in which they are stored.
const hostConfiguration = {
  max_code_size: 3 << 20,
  max_head_data_size: 32 << 10,
  max_upward_queue_count: 8,
  max_upward_queue_size: 1 << 20,
  max_upward_message_size: 1 << 20,
  max_upward_message_num_per_candidate: 5,
  hrmp_max_message_num_per_candidate: 5,
  validation_upgrade_cooldown: 10,
  validation_upgrade_delay: 10,
  // Runtimes before 2023 do not read these two.
  max_candidate_depth: 3,
  allowed_ancestry_len: 2,
}

const relaySlotMs = 6_000

/** The relay chain's state as the block proves it: three or four entries of a trie of our own. */
function relayState({ slot, parentHeader, para_id, goAhead }: Outside, slotMs: number) {
  const relaySlot = Math.floor((slot * slotMs) / relaySlotMs)
  const entries: [string, Uint8Array][] = [
    [
      storageKey('Configuration', 'ActiveConfig'),
      Buffer.concat(Object.values(hostConfiguration).map((limit) => uint(limit, 4))),
    ],
    [storageKey('Babe', 'CurrentSlot'), uint(relaySlot, 8)],
    // The parent is included already, so that no block waits for its inclusion.
    [storageKey('Paras', 'Heads', Twox64Concat(uint(para_id, 4))), withLength(parentHeader)],
  ]
  if (goAhead)
    entries.push([
      storageKey('Paras', 'UpgradeGoAheadSignal', Twox64Concat(uint(para_id, 4))),
      Uint8Array.of(1),
    ])
  let trie: Trie
  for (const [key, value] of entries) trie = insert(trie, nibblesOf(key), value)
  const nodes: Uint8Array[] = []
  const root = rootOf(trie, 0, nodes)
  return { root, nodes: nodes.toSorted(Buffer.compare) }
}

/**
 * The extrinsics that every block begins with: its time, and what the relay chain says. Arguments have the fields of
 * every version of the call; a runtime takes those that its metadata names.
 */
export function inherentsOf(
  code: Pick<Code, 'encodeCall' | 'slotMs'>,
  outside: Outside,
): Uint8Array[] {
  const { root, nodes } = relayState(outside, code.slotMs)
  const noMessages = { full_messages: [], hashed_messages: [] }
  return [
    code.encodeCall('Timestamp', 'set', { now: BigInt(outside.time) }),
    code.encodeCall('ParachainSystem', 'set_validation_data', {
      data: {
        validation_data: {
          parent_head: outside.parentHeader,
          relay_parent_number: 1_000 + 2 * outside.number,
          relay_parent_storage_root: toHex(root),
          max_pov_size: 5 << 20,
        },
        relay_chain_state: nodes,
        // Until 2025.
        downward_messages: [],
        horizontal_messages: [],
        // Since then.
        relay_parent_descendants: [],
        collator_peer_id: undefined,
      },
      inbound_messages_data: { downward_messages: noMessages, horizontal_messages: noMessages },
    }),
  ]
}
