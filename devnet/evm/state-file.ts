import { existsSync } from 'node:fs'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The files that a local EVM chain is kept in. */
export type StateFile = {
  /** What anvil is started with. */
  args: string[]
  /** Whether there was a chain before. */
  isStored: boolean
  /** Unix time of the genesis block, the same at every start. */
  timestamp: number
  /** Makes what anvil wrote last the state of the next start; call it when anvil has ended. */
  keep(): Promise<void>
  stop(): void
}

type State = {
  best_block_number?: number | string
  accounts?: Record<string, { nonce: number | string; code?: string }>
  blocks: { header: { number: string; parentHash: string; timestamp: string } }[]
  transactions?: { info: { from: string; nonce: number }; block_number?: number | string }[]
  historical_states?: [string, unknown][] | null
}

const intervalSeconds = 5
const lookMs = 1_000
// anvil writes its file in one go: one that has not grown for this long is whole.
const quietMs = 500
// A new chain begins in the past, so that its first blocks need not lie in the future.
const headStartSeconds = 120
// Days of blocks. Larger files would take more memory than repairing them is worth.
const longestFile = 200 * 1024 * 1024

/** The time of the genesis block of a new chain. */
export const newGenesisTime = (): number => Math.floor(Date.now() / 1000) - headStartSeconds

/**
 * Prepares the folder of a chain for a start of anvil.
 *
 * anvil makes a genesis block of its own at every start before it loads the stored blocks, and it stores
 * both. Equal timestamps make them the same block; otherwise the file gets one more block 0 per start,
 * and anvil 1.7.1 loads them in any order, so that the chain's identity changes from start to start.
 *
 * anvil writes over its file in place. It therefore writes to another one, which takes the place of the
 * state when it is whole: a kill at any moment leaves a state that can be loaded. The state before it is
 * kept, because anvil takes blocks and accounts at two moments: a block that is mined in between leaves
 * balances that no block of the file explains (measured: 9 of 60 files beside continuous mining).
 */
export async function openStateFile(directory: string): Promise<StateFile> {
  const state = join(directory, 'state.json')
  const next = join(directory, 'state.next.json')
  const previous = join(directory, 'state.previous.json')
  const genesis = join(directory, 'genesis.json')
  const rotate = async () => {
    if (existsSync(state)) await rename(state, previous)
    await rename(next, state)
  }
  // The last one of a chain that was killed; it may be half of one.
  if (existsSync(next)) {
    if (await readState(next)) await rotate()
    else await rm(next)
  }
  const { isStored, stored } = await chooseState(state, previous)
  if (isStored && !stored && !(await isTooLong(state)))
    throw new Error(`${state} is damaged. Start with --reset to begin anew.`)
  const repaired = stored && repair(stored)
  if (repaired) await replace(state, JSON.stringify(repaired))
  const timestamp = (await readTimestamp(genesis)) ?? genesisTime(stored) ?? newGenesisTime()
  await replace(genesis, JSON.stringify({ timestamp }))

  let isMoving = false
  const move = async () => {
    if (isMoving) return
    isMoving = true
    try {
      const { mtimeMs } = await stat(next)
      if (Date.now() - mtimeMs > quietMs) await rotate()
    } catch {
      // Nothing new.
    } finally {
      isMoving = false
    }
  }
  const timer = setInterval(() => void move(), lookMs)
  return {
    isStored,
    timestamp,
    args: [
      ...(isStored ? ['--load-state', state] : []),
      ...['--dump-state', next, '--state-interval', `${intervalSeconds}`],
      // Without them nothing could be read at the blocks before the start.
      '--preserve-historical-states',
    ],
    keep: async () => {
      clearInterval(timer)
      if (!existsSync(next) || !(await readState(next))) return
      await rename(next, state)
      // Written after the last block: nothing older is needed.
      await rm(previous, { force: true })
    },
    stop: () => clearInterval(timer),
  }
}

/** Restores the previous state when the current one is missing or inconsistent. */
async function chooseState(
  state: string,
  previous: string,
): Promise<{ isStored: boolean; stored: State | undefined }> {
  const isStored = existsSync(state)
  const stored = isStored ? await readState(state) : undefined
  const isBad = stored ? !isConsistent(stored) : !isStored
  if (!isBad || !existsSync(previous)) return { isStored, stored }
  const earlier = await readState(previous)
  // An account whose nonce was set manually makes every state look inconsistent.
  if (!earlier || (stored && !isConsistent(earlier))) return { isStored, stored }
  await rename(previous, state)
  return { isStored: true, stored: earlier }
}

/** Whether the accounts are those after the last block: no sender has sent more than the blocks hold. */
function isConsistent({ best_block_number, accounts = {}, transactions = [] }: State): boolean {
  const best = Number(best_block_number ?? Number.POSITIVE_INFINITY)
  const sent = new Map<string, number>()
  for (const { info, block_number } of transactions) {
    if (Number(block_number ?? 0) > best) return false
    const from = info.from.toLowerCase()
    sent.set(from, Math.max(sent.get(from) ?? 0, info.nonce + 1))
  }
  return Object.entries(accounts).every(([address, { nonce, code = '0x' }]) => {
    const count = sent.get(address.toLowerCase()) ?? 0
    // Contracts count what they create.
    return code !== '0x' || Number(nonce) <= count
  })
}

const isTooLong = async (file: string): Promise<boolean> => (await stat(file)).size > longestFile

/** Undefined when it is not whole, or too long to be read here. */
async function readState(file: string): Promise<State | undefined> {
  if (await isTooLong(file)) return undefined
  try {
    const state = JSON.parse(await readFile(file, 'utf8')) as State
    return Array.isArray(state.blocks) ? state : undefined
  } catch {
    return undefined
  }
}

const numberOf = ({ header }: State['blocks'][number]) => Number(header.number)
const timeOf = ({ header }: State['blocks'][number]) => Number(header.timestamp)

/** The first start's: later ones were made at a later time. */
function genesisTime(state: State | undefined): number | undefined {
  const times = (state?.blocks ?? []).filter((block) => numberOf(block) === 0).map(timeOf)
  return times.length > 0 ? Math.min(...times) : undefined
}

/** The state with one genesis block, and its older states in order; undefined when it is like that. */
function repair(state: State): State | undefined {
  const time = genesisTime(state)
  const blocks = state.blocks.filter((block) => numberOf(block) > 0 || timeOf(block) === time)
  // anvil drops the states that it loaded first, and writes them in any order.
  const heights = new Map(
    blocks.map((block) => [block.header.parentHash, numberOf(block) - 1] as const),
  )
  const heightOf = ([hash]: [string, unknown]) => heights.get(hash) ?? Number.POSITIVE_INFINITY
  const states = state.historical_states ?? []
  const sorted = states.toSorted((a, b) => Math.sign(heightOf(a) - heightOf(b)) || 0)
  const isInOrder = sorted.every((one, index) => one === states[index])
  if (blocks.length === state.blocks.length && isInOrder) return undefined
  return { ...state, blocks, ...(state.historical_states && { historical_states: sorted }) }
}

const readTimestamp = (file: string): Promise<number | undefined> =>
  readFile(file, 'utf8').then(
    (text) => (JSON.parse(text) as { timestamp: number }).timestamp,
    () => undefined,
  )

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}
