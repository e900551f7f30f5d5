import { hash256, keyBytes, keyText, toHex } from './bytes.ts'
import { bytesParam, listParam, wordParam } from './params.ts'
import type { State, TrieState } from './state.ts'
import { merkleValueOf, nibblesOf } from './trie.ts'

const kinds = [
  'value',
  'hash',
  'closestDescendantMerkleValue',
  'descendantsValues',
  'descendantsHashes',
] as const

/** What is asked of the storage: one key, or all that begin with it. */
export type StorageItem = {
  key: string
  type: (typeof kinds)[number]
  /** Descendants up to this one were given before. */
  after?: string
}

/** What was found at a key. */
export type StorageResult = {
  key: string
  value?: string
  hash?: string
  closestDescendantMerkleValue?: string
}

/** Checks a question. The chain has no child tries, so that nothing is looked up in one. */
export function storageItems(value: unknown, childTrie: unknown): StorageItem[] {
  const items = listParam(value, 'items').map((item) => {
    const { key, type, paginationStartKey } = (item ?? {}) as Record<string, unknown>
    const after = paginationStartKey ?? undefined
    return {
      key: keyText(bytesParam(key, 'key')),
      type: wordParam(type, 'type', kinds),
      ...(after !== undefined && { after: keyText(bytesParam(after, 'paginationStartKey')) }),
    }
  })
  if (childTrie === undefined || childTrie === null) return items
  bytesParam(childTrie, 'childTrie')
  return []
}

/** Looks the items up, one result after the other. */
export function* queryStorage(
  state: State & Partial<TrieState>,
  items: readonly StorageItem[],
  stateVersion: number,
): Generator<StorageResult, void> {
  for (const { key, type, after } of items) {
    if (type === 'closestDescendantMerkleValue') {
      if (!('trie' in state)) throw new Error('the trie of an old state cannot be worked out')
      const found = merkleValueOf(state.trie, nibblesOf(key), stateVersion)
      if (found) yield { key: print(key), closestDescendantMerkleValue: toHex(found) }
    } else if (type === 'value' || type === 'hash') {
      const value = state.get(key)
      if (value) yield { key: print(key), ...show(value, type === 'hash') }
    } else {
      let at = after === undefined && state.get(key) ? key : state.next(after ?? key)
      for (; at?.startsWith(key); at = state.next(at))
        yield { key: print(at), ...show(state.get(at)!, type === 'descendantsHashes') }
    }
  }
}

const print = (key: string): string => toHex(keyBytes(key))
const show = (value: Uint8Array, isHash: boolean) =>
  isHash ? { hash: toHex(hash256(value)) } : { value: toHex(value) }
