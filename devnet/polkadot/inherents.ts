import { Twox64Concat } from '@polkadot-api/substrate-bindings'
import { storageKey, toHex, uint } from './bytes.ts'
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
}

/** The relay chain's state as the block proves it: two or three entries of a trie of our own. */
function relayState({ slot, para_id, goAhead }: Outside): {
  root: Uint8Array
  nodes: Uint8Array[]
} {
  const entries: [string, Uint8Array][] = [
    [
      storageKey('Configuration', 'ActiveConfig'),
      Buffer.concat(Object.values(hostConfiguration).map((limit) => uint(limit, 4))),
    ],
    // The relay chain's slots are half as long.
    [storageKey('Babe', 'CurrentSlot'), uint(slot * 2, 8)],
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

/** The extrinsics that every block begins with: its time, and what the relay chain says. */
export function inherentsOf(code: Code, outside: Outside): Uint8Array[] {
  const { root, nodes } = relayState(outside)
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
        downward_messages: [],
        horizontal_messages: [],
      },
    }),
  ]
}
