import { createHash } from 'node:crypto'
import { keyOf } from '../../lib/bytes.ts'
import {
  type BalanceReading,
  BlockGoneError,
  type BlockHeader,
  BlockMissingError,
  type BlockRef,
  type Chain,
  type ChainBlock,
  type ChainEvent,
  ChainUnavailableError,
  type Family,
  type Position,
  UnreadableError,
} from '../chain.ts'
import type { TokenInfo } from '../tokens.ts'
import {
  balanceKey,
  createScriptedBlock,
  type ScriptedBlock,
  type ScriptedTransaction,
} from './scripted-block.ts'
import { createScriptedSending, type ScriptedSending } from './scripted-sending.ts'

/** A chain in memory that does what a test says, forks and failures included. */
export type ScriptedChain = Chain & {
  sending: ScriptedSending
  /** Adds a block on top of the head. */
  mine(transactions?: readonly ScriptedTransaction[]): BlockHeader
  /** Replaces the newest blocks; then the nodes announce it. */
  reorganize(depth: number, branch: readonly (readonly ScriptedTransaction[])[]): BlockHeader
  /** Puts the branch back that ends in a block which a reorganization dropped, then the nodes announce it. */
  resume(head: BlockRef): BlockHeader
  /** From now on no node has the blocks below this number. */
  prune(lowest: number): void
  /** Lets a block be unreadable for every node, or not traced, or whole again. */
  spoil(number: number, how: 'unreadable' | 'untraced' | 'whole'): void
  /** The numbers of the blocks that are not whole. */
  spoiled(): number[]
  /** Lets every call fail, hang until it is aborted, or work again. */
  setMode(mode: 'up' | 'down' | 'hanging'): void
  /** Registers a token contract, or a jetton or coin type. */
  addToken(contract_address: Buffer, contract_type: string, info?: Partial<TokenInfo>): void
  /** Says where an item is described. */
  setTokenUri(contract_address: Buffer, token_id: bigint, uri: string): void
  /** The balance after the block of this number, by the script alone. */
  balanceAt(query: Parameters<typeof balanceKey>[0], number: number): bigint
  /** The blocks as they stand now. */
  canonical(): readonly ScriptedBlock[]
  /** How many balances were asked for so far. */
  balanceReads(): number
}

/** How to make one. */
export type ScriptOptions = {
  family: Family
  /** Milliseconds of the first block; each further one is 12 seconds later. */
  time?: number
  /** What every account has of the native coin before the first block. */
  endowment?: bigint
  /** Blocks given at once while behind. */
  batch?: number
  /** Makes the hashes of this chain its own. */
  salt?: string
}

const blockMs = 12_000

/** The account of a token that an owner has on a scripted chain. */
const scriptedAccount = (token: Buffer, owner: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0]), createHash('sha256').update(token).update(owner).digest()])

/** Makes a chain with its first block, number 0. */
export function createScriptedChain(options: ScriptOptions): ScriptedChain {
  const { family, time = 1_780_000_000_000, endowment = 0n, batch = 50, salt = '' } = options
  const spoiled = new Map<number, 'unreadable' | 'untraced'>()
  let count = 0
  let lowest = 0
  let reads = 0
  let mode: 'up' | 'down' | 'hanging' = 'up'
  let changed = Promise.withResolvers<void>()
  const build = (parent: ScriptedBlock | undefined, transactions: readonly ScriptedTransaction[]) =>
    createScriptedBlock({
      family,
      parent,
      transactions,
      endowment,
      time: parent ? parent.time + blockMs : time,
      // A block with the same content on another branch is another block.
      salt: `${salt}/${count++}`,
    })
  let blocks: ScriptedBlock[] = [build(undefined, [])]
  const dropped = new Map<string, ScriptedBlock>()

  const notify = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const head = (): ScriptedBlock => blocks.at(-1)!
  const aborted = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  const pass = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted()
    await Promise.resolve()
    if (mode === 'down') throw new ChainUnavailableError('every node is down')
    while (mode === 'hanging') await Promise.race([changed.promise, aborted(signal)])
  }
  const tokens = createScriptedTokens(family, pass)
  const at = ({ number, hash }: BlockRef): ScriptedBlock | undefined => {
    const block = blocks[number]
    return block?.hash.equals(hash) ? block : undefined
  }

  const cut = (length: number): void => {
    for (const block of blocks.slice(length)) dropped.set(keyOf(block.hash), block)
    blocks = blocks.slice(0, length)
  }

  // As real nodes: only where traces are expected, a block without them lacks something.
  const give = (block: ScriptedBlock, isExpected: boolean): ChainBlock => {
    const how = spoiled.get(block.number)
    if (how === 'unreadable') throw new UnreadableError(`block ${block.number} cannot be read`)
    return how === 'untraced' ? block.untraced(isExpected) : block
  }

  async function* follow(after: Position, signal: AbortSignal): AsyncGenerator<ChainEvent> {
    let position: BlockRef = after
    let isExpected = after.isTraced === true
    for (;;) {
      await pass(signal)
      const next = position.number + 1
      const news = changed.promise
      if (blocks[position.number] && !at(position)) {
        yield { kind: 'fork' }
        return
      }
      if (next < lowest) {
        const to = blocks[lowest - 1]!
        yield {
          kind: 'gap',
          from: next,
          to: { number: to.number, hash: to.hash },
          reason: 'pruned',
        }
        position = to
      } else if (blocks[next]) {
        const some = [give(blocks[next], isExpected)]
        while (some.length < batch) {
          const block = blocks[next + some.length]
          if (!block || spoiled.get(block.number) === 'unreadable') break
          some.push(give(block, isExpected))
        }
        isExpected ||= some.some(({ isTraced }) => isTraced === true)
        yield { kind: 'blocks', blocks: some, head: head().number }
        position = some.at(-1)!
      } else await Promise.race([news, aborted(signal)])
    }
  }

  const readOne = (block: ScriptedBlock, key: string, native: boolean): bigint =>
    block.balances.get(key) ?? (native ? endowment : 0n)
  const queryOf = ({ address, asset }: Parameters<typeof balanceKey>[0]) => ({
    key: balanceKey({ address, asset }),
    native: asset.contract_address.length === 0,
  })

  return {
    ...family,
    sending: createScriptedSending({ canonical: () => blocks, pass }),
    identity: async (signal) => {
      await pass(signal)
      return `scripted:${family.service}:${blocks[0]!.hash.toString('hex')}`
    },
    head: async (signal) => {
      await pass(signal)
      return head()
    },
    header: async (number, signal) => {
      await pass(signal)
      if (number < lowest) throw new BlockMissingError(`no node has block ${number}`)
      return blocks[number]
    },
    follow,
    block: async (number, { isTraced = false }, signal) => {
      await pass(signal)
      const block = blocks[number]
      if (!block || number < lowest) throw new BlockMissingError(`no node has block ${number}`)
      return give(block, isTraced)
    },
    newest: () => head().number,
    readBalances: async (queries, ref, signal): Promise<BalanceReading[]> => {
      await pass(signal)
      reads += queries.length
      const block = family.balances === 'delta' ? head() : at(ref)
      if (!block) throw new BlockGoneError(`block ${ref.number} is not on the chain`)
      return queries.map((query) => {
        const { key, native } = queryOf(query)
        return { balance: readOne(block, key, native), block_number: block.number }
      })
    },
    tokens: tokens.reading,
    stop: async () => {},
    mine: (transactions = []) => {
      blocks.push(build(head(), transactions))
      notify()
      return head()
    },
    reorganize: (depth, branch) => {
      cut(Math.max(1, blocks.length - depth))
      for (const transactions of branch) blocks.push(build(head(), transactions))
      notify()
      return head()
    },
    resume: ({ hash }) => {
      const branch: ScriptedBlock[] = []
      let block = dropped.get(keyOf(hash))
      if (!block || at(block)) throw new Error('no reorganization has dropped this block')
      while (block && !at(block)) {
        branch.unshift(block)
        block = dropped.get(keyOf(block.parent_hash)) ?? blocks[block.number - 1]
      }
      cut(branch[0]!.number)
      blocks.push(...branch)
      notify()
      return head()
    },
    prune: (number) => {
      lowest = number
      notify()
    },
    spoiled: () => [...spoiled.keys()],
    spoil: (number, how) => {
      if (how === 'whole') spoiled.delete(number)
      else spoiled.set(number, how)
      notify()
    },
    setMode: (next) => {
      mode = next
      notify()
    },
    addToken: tokens.add,
    setTokenUri: tokens.setUri,
    balanceAt: (query, number) => {
      const { key, native } = queryOf(query)
      return readOne(blocks[number]!, key, native)
    },
    canonical: () => blocks,
    balanceReads: () => reads,
    status: () => ({ chain_id: null, head: head().number }),
  }
}

/** The tokens of a scripted chain, as tests add them. */
function createScriptedTokens(
  family: Pick<ScriptOptions['family'], 'tokenAccounts'>,
  pass: (signal: AbortSignal) => Promise<void>,
) {
  const tokens = new Map<string, { contract_type: string; info: TokenInfo }>()
  const uris = new Map<string, string>()
  const itemOf = (contract: Buffer, id: bigint) => `${contract.toString('hex')}/${id}`
  const reading: ScriptedChain['tokens'] = {
    verifyContract: async ({ contract_address, contract_type }, signal) => {
      await pass(signal)
      const found = tokens.get(contract_address.toString('hex'))
      if (!found)
        return { ok: false, field: 'contract_address', detail: 'There is no contract here.' }
      if (found.contract_type !== contract_type)
        return { ok: false, field: 'contract_type', detail: 'The contract is of another type.' }
      return { ok: true, info: found.info }
    },
    readTokenUris: async (assets, signal) => {
      await pass(signal)
      return assets.map(
        ({ contract_address, token_id }) => uris.get(itemOf(contract_address, token_id)) ?? null,
      )
    },
    verifyToken: async ({ asset_type, token_address }, signal) => {
      await pass(signal)
      const found = tokens.get(token_address.toString('hex'))
      if (!found) return { ok: false, field: 'token_address', detail: 'There is no such token.' }
      const asset = { asset_type, contract_address: token_address, token_id: 0n }
      return { ok: true, asset, info: found.info }
    },
    ...(family.tokenAccounts && {
      findAccounts: async ({ contract_address }, owners, signal) => {
        await pass(signal)
        const known = tokens.has(contract_address.toString('hex'))
        return owners.map((owner) => (known ? scriptedAccount(contract_address, owner) : undefined))
      },
    }),
    resolveImport: async ({ asset_type, address, token_address }, signal) => {
      await pass(signal)
      const found = token_address && tokens.get(token_address.toString('hex'))
      if (!address) return { ok: false, field: 'address', detail: 'Is required.' }
      if (!found || !token_address)
        return { ok: false, field: 'token_address', detail: 'There is no such token.' }
      return {
        ok: true,
        address,
        asset: { asset_type, contract_address: token_address, token_id: 0n },
        token_account_address: Buffer.alloc(0),
        info: found.info,
      }
    },
  }

  return {
    reading,
    add: ((contract_address, contract_type, info = {}) => {
      const known = { name: null, symbol: null, decimals: null, ...info }
      tokens.set(contract_address.toString('hex'), { contract_type, info: known })
    }) satisfies ScriptedChain['addToken'],
    setUri: ((contract_address, token_id, uri) => {
      uris.set(itemOf(contract_address, token_id), uri)
    }) satisfies ScriptedChain['setTokenUri'],
  }
}
