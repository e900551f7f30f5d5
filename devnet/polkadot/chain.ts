import { type Block, beginBlock, timeOf } from './author.ts'
import { compact, hash256, toHex } from './bytes.ts'
import { type Code, createCodes } from './code.ts'
import { createPool, type Pool } from './pool.ts'
import { type ChainSpec, codeIn, type Endowment, genesisOf, setWaitingCode } from './spec.ts'
import { createTrieState, type State } from './state.ts'
import { openStore, type StoredBlock } from './store.ts'
import { orderedRoot } from './trie.ts'
import { nextVersionOf } from './upgrade.ts'

/** How a chain of one author behaves. */
export type ChainOptions = {
  spec: ChainSpec
  endowments?: readonly Endowment[]
  /** The folder of its state; without one it is in memory. */
  directory?: string
  /** Blocks on top of a block before it is final. */
  finality?: number
  /** The time of the next block, in milliseconds. */
  now(): number
  /** How long after its parent a block is at least; a slot unless given. */
  leastMs?: number
  /** Final blocks whose state can be asked for. */
  history?: number
  /** The block with which the relay chain lets the next version of the runtime be applied. */
  upgradeAt?: number
}

/** What happens on a chain. */
export type ChainNews =
  | { kind: 'new' | 'best'; block: Block }
  /** With the blocks that can never be final any more. */
  | { kind: 'final'; block: Block; pruned: readonly string[] }

/** How one block is made. */
export type Making = {
  parent?: string
  /** Instead of what is in the pool. */
  extrinsics?: readonly Uint8Array[]
  /** Slots left out, by which a block differs from its sibling. */
  skip?: number
}

/** A chain whose blocks the real runtime makes. */
export type PolkadotChain = {
  spec: ChainSpec
  genesis: string
  pool: Pool
  best(): Block
  final(): Block
  /** What is in memory: the newest final blocks, and all above them, parents first. */
  recent(): { final: Block[]; above: Block[] }
  /** Makes a block on the best one, or on another to begin a fork. */
  make(making?: Making): Block
  find(hash: string): StoredBlock | undefined
  /** The block of that number below the best one. */
  at(number: number): StoredBlock | undefined
  /** The state after a block; undefined when it is not kept any more. */
  stateOf(block: StoredBlock): State | undefined
  codeOf(state: State): Code
  subscribe(listen: (news: ChainNews) => void): () => void
  close(): void
}

// States of so many final blocks stay in memory; older ones are read from the store.
const recentFinal = 16

/** Begins a chain, or continues with the one in the folder. */
export function openChain(options: ChainOptions): PolkadotChain {
  const { spec, endowments = [], finality = 0, history = 20_000, directory } = options
  const store = openStore({ history, ...(directory !== undefined && { directory }) })
  const codeOf = createCodes()
  const recent = new Map<string, Block>()
  const listeners = new Set<(news: ChainNews) => void>()
  const { genesis, best: loaded, final: loadedFinal } = load(options, endowments, store, recent)
  let best = loaded
  let final = loadedFinal

  const notify = (news: ChainNews) => {
    for (const listen of listeners) listen(news)
  }

  const finalizeUpTo = (last: Block): void => {
    const path: Block[] = []
    for (let block = last; block.number > final.number; block = recent.get(block.parentHash)!)
      path.unshift(block)
    if (path.length === 0) return
    store.finalize(path)
    final = last
    const standing = new Set([last.hash])
    const pruned: string[] = []
    for (const [hash, block] of recent) {
      if (standing.has(block.parentHash)) standing.add(hash)
      const isFork = block.number > last.number ? !standing.has(hash) : !isFinal(hash, block.number)
      if (isFork) pruned.push(hash)
      if (isFork || block.number <= last.number - recentFinal) recent.delete(hash)
    }
    for (const block of path) notify({ kind: 'final', block, pruned: block === last ? pruned : [] })
  }
  const isFinal = (hash: string, number: number) => store.findFinal(number)?.hash === hash

  const parentOf = (hash: string | undefined): Block => {
    if (hash === undefined) return best
    const parent = recent.get(hash)
    if (!parent || parent.number < final.number)
      throw new Error(`no block can be made on ${hash}: it is unknown or below the final one`)
    return parent
  }

  const make = ({ parent: on, extrinsics, skip = 0 }: Making = {}): Block => {
    const parent = parentOf(on)
    const code = codeOf(parent.state)
    const goAhead = options.upgradeAt === parent.number + 1
    const { leastMs } = options
    const plan = { code, parent, para_id: spec.para_id, now: options.now(), leastMs }
    const draft = beginBlock({ ...plan, skip, goAhead })
    if (extrinsics) for (const extrinsic of extrinsics) draft.apply(extrinsic)
    else pool.applyTo(draft.apply)
    const block = draft.seal()
    if (recent.has(block.hash)) return recent.get(block.hash)!
    store.addBlock(block)
    recent.set(block.hash, block)
    notify({ kind: 'new', block })
    if (block.number > best.number) {
      best = block
      notify({ kind: 'best', block })
      let last = block
      for (let back = 0; back < finality && last.number > final.number; back++)
        last = recent.get(last.parentHash)!
      finalizeUpTo(last)
    }
    return block
  }

  const find = (hash: string) => recent.get(hash) ?? store.find(hash)
  const pool = createPool({ best: () => best, codeOf })
  return {
    spec,
    genesis,
    pool,
    best: () => best,
    final: () => final,
    recent: () => {
      const all = [...recent.values()]
      return {
        final: all.filter((block) => block.number <= final.number),
        above: all.filter((block) => block.number > final.number),
      }
    },
    make,
    find,
    at: (number) => {
      if (number > best.number || number < 0) return undefined
      if (number <= final.number) return store.findFinal(number)
      let block = best
      while (block.number > number) block = recent.get(block.parentHash)!
      return block
    },
    stateOf: ({ hash, number }) => {
      const near = recent.get(hash)
      if (number < final.number - history) return undefined
      return near ? near.state : isFinal(hash, number) ? store.stateAt(number) : undefined
    },
    codeOf,
    subscribe: (listen) => {
      listeners.add(listen)
      return () => void listeners.delete(listen)
    },
    close: store.close,
  }
}

function load(
  { spec, upgradeAt }: ChainOptions,
  endowments: readonly Endowment[],
  store: ReturnType<typeof openStore>,
  recent: Map<string, Block>,
): { genesis: string; best: Block; final: Block } {
  const first = createGenesis(spec, endowments, upgradeAt !== undefined)
  const facts = store.facts() as { genesis: string } | undefined
  if (!facts) {
    store.begin({ genesis: first.hash }, first)
    recent.set(first.hash, first)
    return { genesis: first.hash, best: first, final: first }
  }
  if (facts.genesis !== first.hash)
    throw new Error('the folder holds another chain: its seed or its accounts are not these')
  const { final, state, above } = store.load()
  const last: Block = {
    ...final,
    changes: new Map(),
    state: createTrieState(undefined).with(state),
  }
  recent.set(last.hash, last)
  let best = last
  for (const stored of above) {
    const parent = recent.get(stored.parentHash)
    if (!parent) continue
    const block: Block = { ...stored, state: parent.state.with(stored.changes) }
    recent.set(block.hash, block)
    if (block.number > best.number) best = block
  }
  return { genesis: first.hash, best, final: last }
}

function createGenesis(
  spec: ChainSpec,
  endowments: readonly Endowment[],
  isUpgraded: boolean,
): Block {
  const changes = genesisOf(spec, endowments)
  if (isUpgraded) {
    const code = createCodes()(createTrieState(undefined).with(changes))
    setWaitingCode(changes, nextVersionOf(codeIn(changes), code.version))
  }
  const state = createTrieState(undefined).with(changes)
  const parentHash = new Uint8Array(32)
  const header = Buffer.concat([
    parentHash,
    compact(0),
    state.root(0),
    orderedRoot([], 0),
    compact(0),
  ])
  const hash = toHex(hash256(header))
  return { number: 0, hash, parentHash: toHex(parentHash), header, extrinsics: [], changes, state }
}

/** The time of a block of the chain, in milliseconds. */
export const blockTimeOf = (chain: PolkadotChain, block: Block): number =>
  timeOf(chain.stateOf(block) ?? block.state)
