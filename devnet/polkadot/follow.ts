import type { Block } from './author.ts'
import { keyText, toHex } from './bytes.ts'
import type { ChainNews, PolkadotChain } from './chain.ts'
import { RpcError } from './rpc.ts'
import { createOverlay } from './state.ts'
import { queryStorage, type StorageItem, type StorageResult } from './storage-query.ts'

/** What a follower may hold. */
export type FollowLimits = {
  /** Blocks that are final or gone and that the client has not let go of. */
  pinned: number
  /** Items of storage questions that wait for their client; every node must allow 16. */
  operations: number
  /** Results of a storage question that are sent without being asked to continue. */
  page: number
}

/** How one follower is served. */
export type FollowOptions = FollowLimits & {
  withRuntime: boolean
  push(event: unknown): void
  /** The client does not read what it is sent. */
  isBehind(): boolean
  /** Nothing more comes. */
  onStop(): void
}

/** One client that follows the head of the chain (chainHead_v1_follow). */
export type Follow = {
  header(hash: string): string
  body(hash: string): unknown
  call(hash: string, entry: string, input: Uint8Array): unknown
  storage(hash: string, items: readonly StorageItem[]): unknown
  resume(operationId: string): void
  stopOperation(operationId: string): void
  unpin(hashes: readonly string[]): void
  /** Says that nothing more comes, and forgets everything. */
  stop(): void
  /** Forgets everything. */
  end(): void
}

const codeKey = keyText(Buffer.from(':code'))
const shownMs = 60_000

/** Begins to follow: what there is at once, then whatever happens. */
export function startFollow(chain: PolkadotChain, options: FollowOptions): Follow {
  const { withRuntime, isBehind, onStop } = options
  const pinned = new Map<string, Block>()
  /** Reported, and neither final nor gone. */
  const open = new Set<string>()
  const waiting = new Map<string, { items: number; resume(): void }>()
  let operations = 0
  let isOver = false

  const end = () => {
    if (isOver) return
    isOver = true
    unsubscribe()
    pinned.clear()
    waiting.clear()
    onStop()
  }
  const stop = () => {
    if (isOver) return
    options.push({ event: 'stop' })
    end()
  }
  const push = (event: unknown) => {
    if (isOver) return
    if (isBehind()) stop()
    else options.push(event)
  }

  const runtimeOf = ({ state }: Block) => {
    const { specName, implName, specVersion, implVersion, transactionVersion, apis } =
      chain.codeOf(state).version
    const spec = { specName, implName, specVersion, implVersion, transactionVersion }
    return { type: 'valid', spec: { ...spec, apis: Object.fromEntries(apis) } }
  }
  const showNew = (block: Block) => {
    pinned.set(block.hash, block)
    open.add(block.hash)
    push({
      event: 'newBlock',
      blockHash: block.hash,
      parentBlockHash: block.parentHash,
      ...(withRuntime && { newRuntime: block.changes.has(codeKey) ? runtimeOf(block) : null }),
    })
  }
  const showFinal = (hash: string, gone: readonly string[]) => {
    const prunedBlockHashes = gone.filter((one) => open.delete(one))
    open.delete(hash)
    push({ event: 'finalized', finalizedBlockHashes: [hash], prunedBlockHashes })
    const held = [...pinned.keys()].filter((one) => !open.has(one)).length
    if (held > options.pinned) stop()
  }
  const begin = () => {
    const { final, above } = chain.recent()
    const last = final.at(-1)!
    // About a minute of them, for clients that come back.
    const count = Math.ceil(shownMs / chain.codeOf(last.state).slotMs)
    const shown = final.slice(-count)
    for (const block of shown) pinned.set(block.hash, block)
    push({
      event: 'initialized',
      finalizedBlockHashes: shown.map(({ hash }) => hash),
      ...(withRuntime && { finalizedBlockRuntime: runtimeOf(last) }),
    })
    for (const block of above) showNew(block)
    push({ event: 'bestBlockChanged', bestBlockHash: chain.best().hash })
  }
  const notify = (news: ChainNews) => {
    if (news.kind === 'new') showNew(news.block)
    else if (news.kind === 'final') showFinal(news.block.hash, news.pruned)
    else push({ event: 'bestBlockChanged', bestBlockHash: news.block.hash })
  }

  const find = (hash: string): Block => {
    const block = pinned.get(hash)
    if (!block) throw new RpcError(-32_801, `Invalid block hash: ${hash} is not pinned`)
    return block
  }
  const used = () => [...waiting.values()].reduce((sum, { items }) => sum + items, 0)
  /** What needs no second step is done at once; its outcome follows the answer. */
  const operate = (work: (operationId: string) => void, more: object = {}) => {
    if (used() >= options.operations) return { result: 'limitReached' }
    const operationId = String(++operations)
    try {
      work(operationId)
    } catch (error) {
      push({ event: 'operationError', operationId, error: (error as Error).message })
    }
    return { result: 'started', operationId, ...more }
  }
  const givePages = (operationId: string, results: Iterator<StorageResult>, items: number) => {
    let next = results.next()
    const resume = () => {
      waiting.delete(operationId)
      const found: StorageResult[] = []
      for (; !next.done && found.length < options.page; next = results.next())
        found.push(next.value)
      if (found.length > 0) push({ event: 'operationStorageItems', operationId, items: found })
      if (next.done) return push({ event: 'operationStorageDone', operationId })
      waiting.set(operationId, { items, resume })
      push({ event: 'operationWaitingForContinue', operationId })
    }
    resume()
  }

  const unsubscribe = chain.subscribe(notify)
  begin()
  return {
    header: (hash) => toHex(find(hash).header),
    body: (hash) => {
      const value = find(hash).extrinsics.map(toHex)
      return operate((operationId) => push({ event: 'operationBodyDone', operationId, value }))
    },
    call: (hash, entry, input) => {
      const { state } = find(hash)
      if (!withRuntime) throw new RpcError(-32_802, 'The follow subscription has no runtime')
      return operate((operationId) => {
        const output = toHex(chain.codeOf(state).call(entry, input, createOverlay(state)))
        push({ event: 'operationCallDone', operationId, output })
      })
    },
    storage: (hash, items) => {
      const { state } = find(hash)
      const taken = items.slice(0, options.operations - used())
      const { stateVersion } = chain.codeOf(state).version
      const results = queryStorage(state, taken, stateVersion)
      return operate((operationId) => givePages(operationId, results, taken.length), {
        discardedItems: items.length - taken.length,
      })
    },
    resume: (operationId) => waiting.get(operationId)?.resume(),
    stopOperation: (operationId) => void waiting.delete(operationId),
    unpin: (hashes) => {
      if (new Set(hashes).size < hashes.length)
        throw new RpcError(-32_804, 'A block hash is given twice')
      for (const hash of hashes) find(hash)
      for (const hash of hashes) pinned.delete(hash)
    },
    stop,
    end,
  }
}
