import { toHex } from './bytes.ts'
import type { PolkadotChain } from './chain.ts'
import { bytesParam, numberParam, textParam } from './params.ts'
import type { Method, Notify, Session } from './rpc.ts'
import { createOverlay, type State } from './state.ts'
import { queryStorage, storageItems } from './storage-query.ts'

/** The state after a block; throws when it is unknown or discarded. */
export type StateOf = (hash: string) => State

/** The group archive_v1, except the storage. */
export function createArchive(chain: PolkadotChain, stateOf: StateOf): Record<string, Method> {
  const find = (hash: unknown) => chain.find(textParam(hash, 'hash'))
  return {
    archive_v1_genesisHash: () => chain.genesis,
    archive_v1_finalizedHeight: () => chain.final().number,
    archive_v1_hashByHeight: (height: unknown) => {
      const number = numberParam(height, 'height')
      if (number <= chain.final().number) return [chain.at(number)!.hash]
      const { above } = chain.recent()
      return above.filter((block) => block.number === number).map(({ hash }) => hash)
    },
    archive_v1_header: (hash: unknown) => {
      const block = find(hash)
      return block ? toHex(block.header) : null
    },
    archive_v1_body: (hash: unknown) => find(hash)?.extrinsics.map(toHex) ?? null,
    archive_v1_call: (hash: unknown, entry: unknown, input: unknown) => {
      const name = textParam(entry, 'function')
      const bytes = bytesParam(input, 'callParameters')
      const block = find(hash)
      if (!block) return null
      try {
        const state = stateOf(block.hash)
        const output = chain.codeOf(state).call(name, bytes, createOverlay(state))
        return { success: true, value: toHex(output) }
      } catch (error) {
        return { success: false, error: (error as Error).message }
      }
    },
  }
}

/** The storage of any block, for one connection. All of it is sent at once. */
export function createArchiveStorage(
  chain: PolkadotChain,
  { stateOf, notify }: { stateOf: StateOf; notify: Notify },
): Session {
  let count = 0
  return {
    methods: {
      archive_v1_storage: (hash: unknown, asked: unknown, childTrie: unknown) => {
        const name = textParam(hash, 'hash')
        const items = storageItems(asked, childTrie)
        const id = `archive-${++count}`
        const push = (event: unknown) => notify('archive_v1_storageEvent', id, event)
        try {
          const state = stateOf(name)
          const { stateVersion } = chain.codeOf(state).version
          for (const found of queryStorage(state, items, stateVersion))
            push({ event: 'storage', ...found })
          push({ event: 'storageDone' })
        } catch (error) {
          push({ event: 'storageError', error: (error as Error).message })
        }
        return id
      },
      // Whatever was asked for is sent already.
      archive_v1_stopStorage: (id: unknown) => void textParam(id, 'operationId'),
    },
    close: () => {},
  }
}
