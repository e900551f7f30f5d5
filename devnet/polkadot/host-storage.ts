import { compact, keyBytes, keyText, readCompact, uint, withLength } from './bytes.ts'
import { type HostContext, put, putSpan, readSpan } from './memory.ts'
import { orderedRoot } from './trie.ts'

const none = Uint8Array.of(0)
const some = (bytes: Uint8Array): Buffer => Buffer.concat([Uint8Array.of(1), bytes])

/** The host functions by which a runtime reads and writes its state. */
export function createStorageHost(context: HostContext) {
  const key = (span: bigint) => keyText(readSpan(context, span))
  const option = (value: Uint8Array | null) =>
    putSpan(context, value === null ? none : some(withLength(value)))
  const clear = (prefix: bigint, limit?: number) => {
    const { removed, isDone } = context.storage.clearPrefix(key(prefix), limit)
    return putSpan(context, Buffer.concat([Uint8Array.of(isDone ? 0 : 1), uint(removed, 4)]))
  }
  const nothing = () => putSpan(context, none)
  // Asset Hub keeps nothing in child tries.
  const noChild = {
    ext_default_child_storage_get_version_1: nothing,
    ext_default_child_storage_read_version_1: nothing,
    ext_default_child_storage_next_key_version_1: nothing,
    ext_default_child_storage_exists_version_1: () => 0,
  }
  return {
    ext_storage_get_version_1: (name: bigint) => option(context.storage.get(key(name))),
    ext_storage_exists_version_1: (name: bigint) =>
      context.storage.get(key(name)) === null ? 0 : 1,
    ext_storage_read_version_1: (name: bigint, out: bigint, offset: number) => {
      const value = context.storage.get(key(name))
      if (value === null) return nothing()
      const target = readSpan(context, out)
      target.set(value.subarray(offset, offset + target.length))
      return putSpan(context, some(uint(Math.max(0, value.length - offset), 4)))
    },
    ext_storage_set_version_1: (name: bigint, value: bigint) =>
      context.storage.set(key(name), Uint8Array.from(readSpan(context, value))),
    ext_storage_clear_version_1: (name: bigint) => context.storage.set(key(name), null),
    ext_storage_clear_prefix_version_1: (prefix: bigint) => void clear(prefix),
    ext_storage_clear_prefix_version_2: (prefix: bigint, limit: bigint) => {
      const bytes = readSpan(context, limit)
      return clear(prefix, bytes[0] === 1 ? Buffer.from(bytes).readUInt32LE(1) : undefined)
    },
    ext_storage_append_version_1: (name: bigint, item: bigint) => {
      const text = key(name)
      const old = context.storage.get(text)
      const { value: count, end } = old?.length ? readCompact(old) : { value: 0, end: 0 }
      const items = old ? old.subarray(end) : none.subarray(1)
      const grown = Buffer.concat([compact(count + 1), items, readSpan(context, item)])
      context.storage.set(text, grown)
    },
    ext_storage_next_key_version_1: (name: bigint) => {
      const next = context.storage.next(key(name))
      return option(next === null ? null : keyBytes(next))
    },
    ext_storage_start_transaction_version_1: () => context.storage.start(),
    ext_storage_commit_transaction_version_1: () => context.storage.commit(),
    ext_storage_rollback_transaction_version_1: () => context.storage.rollback(),
    ext_storage_root_version_1: () => putSpan(context, context.storage.root(0)),
    ext_storage_root_version_2: (version: number) =>
      putSpan(context, context.storage.root(version)),
    ext_trie_blake2_256_ordered_root_version_1: (items: bigint) =>
      put(context, orderedRoot(readItems(readSpan(context, items)), 0)),
    ext_trie_blake2_256_ordered_root_version_2: (items: bigint, version: number) =>
      put(context, orderedRoot(readItems(readSpan(context, items)), version)),
    ...noChild,
  }
}

/** A list of byte strings, copied. */
function readItems(bytes: Uint8Array): Uint8Array[] {
  const list = readCompact(bytes)
  const items: Uint8Array[] = []
  let at = list.end
  for (let left = list.value; left > 0; left--) {
    const { value: length, end } = readCompact(bytes, at)
    items.push(Uint8Array.from(bytes.subarray(end, end + length)))
    at = end + length
  }
  return items
}
