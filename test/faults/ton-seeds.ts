import { Address, beginCell, Cell, internal, loadTransaction, type MessageRelaxed } from '@ton/core'
import { jettonTransfer } from '../../devnet/ton/jetton.ts'
import { startTonDevChain, type TonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import type { Chain, Position, Tracked } from '../../src/chains/chain.ts'
import { createTonChain } from '../../src/chains/ton/chain.ts'
import type { AssetKey } from '../../src/contract/records/assets.ts'
import { createByteMap, createByteSet } from '../../src/lib/bytes.ts'
import { bytesOf, createPayer, fundPayers } from '../chains/ton/ton-payers.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers } from './program.ts'

/** What following one seed's chain came to. */
export type SeedOutcome = {
  blocks: number
  shardBlocks: number
  mostShards: number
  transfers: number
  bounces: number
  restarts: number
  accountsInBalance: number
  /** Accounts whose records add up to what their balance has changed by. */
  sums: number
  /** Movements of tokens, and owners whose records of tokens add up to what their token balance has changed by. */
  tokenMovements: number
  tokenSums: number
}

type Random = () => number

const rounds = 24

/** Splits and merges at random, up to eight shards. */
const shake = (dev: TonDevChain, random: Random): void => {
  const shards = dev.chain.shards()
  const some = shards[Math.floor(random() * shards.length)]!
  const half = (some & -some) >> 1n
  if (random() < 0.5 && shards.length < 8) dev.chain.split(some)
  else dev.chain.merge((some ^ (half << 1n)) | (half << 2n))
}

type Truth = { transfers: string[]; bounces: string[]; accounts: number }

type WireMessage = { hash: string; source: string; destination: string; value: string }
type Wire = {
  account: string
  data: string
  fee: string
  transaction_id: { hash: string }
  in_msg?: WireMessage
  out_msgs: WireMessage[]
}

/** What the chain itself holds, read without anything of the code under test. */
const readTruth = (
  dev: TonDevChain,
  from: number,
  { tracked, holders }: { tracked: ReadonlySet<string>; holders: ReadonlySet<string> },
): Truth => {
  const truth: Truth = { transfers: [], bounces: [], accounts: 0 }
  const head = dev.chain.head().id.seqno
  const note = (side: string, wire: Wire, { hash, value }: Pick<WireMessage, 'hash' | 'value'>) =>
    truth.transfers.push(
      `${side} ${wire.account} ${wire.transaction_id.hash} ${hash} ${value} ${wire.fee}`,
    )
  for (let seqno = 2; seqno <= head; seqno++) {
    const changes = new Map<string, bigint>()
    for (const { wire: text } of dev.chain.store.transactionsByMaster(seqno)) {
      const wire = JSON.parse(text) as Wire
      const internalIn = wire.in_msg?.source ? wire.in_msg : undefined
      let change = BigInt(internalIn?.value ?? 0) - BigInt(wire.fee)
      for (const { value } of wire.out_msgs) change -= BigInt(value)
      changes.set(wire.account, (changes.get(wire.account) ?? 0n) + change)
      if (seqno <= from) continue
      if (tracked.has(wire.account)) {
        if (internalIn) note('in', wire, internalIn)
        for (const message of wire.out_msgs) note('out', wire, message)
        // A message from outside that sends nothing on costs its fee all the same.
        if (!internalIn && wire.out_msgs.length === 0 && wire.fee !== '0')
          note('out', wire, { hash: '', value: '0' })
      }
      const { description } = loadTransaction(Cell.fromBase64(wire.data).beginParse())
      const isBack = description.type === 'generic' && description.bouncePhase?.type === 'ok'
      const source = isBack && internalIn ? Address.parse(internalIn.source).toRawString() : ''
      if (tracked.has(source) || holders.has(source)) truth.bounces.push(internalIn!.hash)
    }
    for (const [account, change] of changes) {
      const [before, after] = [seqno - 1, seqno].map((at) => dev.chain.account(account, at).balance)
      if (after! - before! !== change)
        throw new Error(`block ${seqno}: ${account} changed by ${after! - before!}, not ${change}`)
      truth.accounts++
    }
  }
  return truth
}

const milli = 1_000_000n

/** A burn by TEP-74. */
const burn = (holder: Address, amount: bigint, value: bigint): MessageRelaxed =>
  internal({
    ...{ to: holder, value, bounce: true },
    body: beginCell()
      .storeUint(0x595f07bc, 32)
      .storeUint(0, 64)
      .storeCoins(amount)
      .storeAddress(null)
      .storeMaybeRef(null)
      .endCell(),
  })

/** How many tokens an account of a token holds after a block, read from its storage. */
const heldBy = (dev: TonDevChain, holder: Address, seqno: number): bigint => {
  const { data } = dev.chain.account(holder.toRawString(), seqno)
  return data ? data.beginParse().loadCoins() : 0n
}

/** Follows a chain of random traffic, splits and merges through nodes that fail, and compares. */
export async function runTonSeed(seed: number): Promise<SeedOutcome> {
  const random = createRandom(seed)
  // Of its own: how fast the follower is must not change the chain.
  const killing = createRandom(~seed)
  const dev = await startTonDevChain({
    ...{ seed, blockTimeMs: 0, startTime: 1_800_000_000, rounds: 'random' },
  })
  const payers = Array.from({ length: 6 }, (_, number) => createPayer(dev, number))
  await fundPayers(dev, payers)
  const accounts = Array.from(
    { length: 10 },
    () =>
      new Address(
        random() < 0.1 ? -1 : 0,
        Buffer.from(Array.from({ length: 32 }, () => random() * 256)),
      ),
  )
  const everyone = [...payers.map(({ address }) => address), ...accounts]
  const jetton = await dev.deployJetton({ name: 'Token', symbol: 'TKN', decimals: 6 })
  for (const { address } of payers.slice(0, 4)) await jetton.mint(address, 10_000n)
  const holders = createByteMap<Address>()
  for (const owner of everyone) holders.set(bytesOf(jetton.holderOf(owner)), owner)
  const asset: AssetKey = {
    asset_type: 'ASSET_TYPE_T',
    contract_address: bytesOf(jetton.master),
    token_id: 0n,
  }
  const tracked: Tracked = {
    accounts: createByteSet(everyone.map(bytesOf)),
    contracts: createByteSet([]),
    tokenAccount: (account) => {
      const owner = holders.get(account)
      return owner ? [{ owner: bytesOf(owner), asset }] : []
    },
  }

  const [lagging, flaky, dying, lying] = await Promise.all(
    [1, 2, 3, 4].map(() => dev.addEndpoint()),
  )
  lagging!.faults.add({ kind: 'lag', blocks: 2 })
  for (const kind of ['429', '500', 'reset'] as const)
    flaky!.faults.add({ kind, probability: 0.08 })
  lying!.faults.add({ kind: 'wrong_hash', probability: 0.3 })
  const upstreams = [lagging!, lying!, dying!, flaky!].map(({ node_url }) => ({ url: node_url }))
  const open = (): Chain => createTonChain({ upstreams, pollMs: 10, inFlight: 4 })

  let chain = open()
  const never = new AbortController().signal
  const start = await chain.head(never)
  let position: Position = start
  const outcome: SeedOutcome = {
    ...{ blocks: 0, shardBlocks: 0, mostShards: 1, transfers: 0, bounces: 0, restarts: 0 },
    ...{ accountsInBalance: 0, sums: 0, tokenMovements: 0, tokenSums: 0 },
  }
  const seen: string[] = []
  /** What the records of each account add up to, their fees counted once. */
  const sums = new Map<string, bigint>()
  const tokenSums = new Map<string, bigint>()
  const bounced: string[] = []
  let target = Number.POSITIVE_INFINITY

  const follow = async (): Promise<void> => {
    while (position.number < target) {
      const ending = new AbortController()
      try {
        for await (const event of chain.follow(position, ending.signal)) {
          if (event.kind !== 'blocks') throw new Error(`unexpected ${event.kind}`)
          for (const block of event.blocks) {
            // Killed before it could be stored: it has to come again.
            if (killing() < 0.06) {
              outcome.restarts++
              await chain.stop()
              chain = open()
              throw new Error('killed')
            }
            const content = block.decode(tracked)
            if (content.unknown_kinds) throw new Error('a message of the standard was not read')
            for (const movement of content.movements) {
              const { only, from, to, transaction_hash, transfer_hash, value } = movement
              const { transaction_fee, detail } = movement
              const account = chain.formatAddress(only === 'from' ? from : to)
              if (movement.asset.contract_address.length > 0) {
                const change = only === 'from' ? -value : value
                tokenSums.set(account, (tokenSums.get(account) ?? 0n) + change)
                outcome.tokenMovements++
                continue
              }
              const hashes = [transaction_hash, transfer_hash].map(
                (hash) => hash?.toString('base64') ?? '',
              )
              const fee = detail?.pays_fee ? transaction_fee : 0n
              sums.set(
                account,
                (sums.get(account) ?? 0n) + (only === 'from' ? -value : value) - fee,
              )
              seen.push(
                `${only === 'from' ? 'out' : 'in'} ${account} ${hashes.join(' ')} ${value} ${transaction_fee}`,
              )
            }
            for (const update of content.updates ?? [])
              bounced.push(update.transfer_hash.toString('base64'))
            const { number, hash, detail } = block
            position = { number, hash, detail: JSON.parse(JSON.stringify(detail)) }
            if (number >= target) return
          }
        }
      } catch (error) {
        const isExpected =
          error instanceof Error &&
          /killed|stopped|Unavailable/.test(`${error.name} ${error.message}`)
        if (!isExpected) throw error
      } finally {
        ending.abort()
      }
    }
  }
  const following = follow()

  const anyone = () => everyone[Math.floor(random() * everyone.length)]!
  // Some have too few coins to arrive, some are of more tokens than there are.
  const moveTokens = (payer: Address): MessageRelaxed => {
    const amount = BigInt(Math.floor(random() ** 3 * 12_000))
    // Often hardly enough to run the next contract: then the tokens come back, or do not leave.
    const value = BigInt(Math.floor((random() < 0.5 ? 2 + random() * 6 : random() * 120) * 1e6))
    const holder = jetton.holderOf(payer)
    if (random() < 0.4) return burn(holder, amount, value)
    const forward = random() < 0.3 ? BigInt(Math.floor(random() * 30)) * milli : 0n
    const excessTo = random() < 0.5 ? payer : null
    return jettonTransfer({ holder, to: anyone(), amount, excessTo, forward, value })
  }
  for (let round = 0; round < rounds; round++) {
    for (const payer of payers) {
      if (random() < 0.4) continue
      const count = Math.floor(random() * 4)
      await payer.send(
        ...Array.from({ length: count }, () => ({
          message: internal({
            to: anyone(),
            value: BigInt(1 + Math.floor(random() * 1e9)),
            bounce: random() < 0.5,
            body: `round ${round}`,
          }),
          mode: 3,
        })),
      )
    }
    for (const payer of payers)
      if (random() < 0.4) await payer.send({ message: moveTokens(payer.address), mode: 3 })
    if (random() < 0.4) shake(dev, random)
    await dev.mine(1)
    outcome.mostShards = Math.max(outcome.mostShards, dev.chain.shards().length)
    if (round === rounds / 2) await dying!.stop()
  }
  await dev.mine(6)
  target = dev.chain.head().id.seqno
  await following

  const names = new Set(everyone.map((address) => address.toRawString()))
  const truth = readTruth(dev, start.number, {
    tracked: names,
    holders: new Set(everyone.map((owner) => jetton.holderOf(owner).toRawString())),
  })
  compare('transfers', seen, truth.transfers)
  compare('bounces', bounced, truth.bounces)
  for (const name of names) {
    const [before, after] = [start.number, target].map((at) => dev.chain.account(name, at).balance)
    if (after! - before! !== (sums.get(name) ?? 0n))
      throw new Error(`the records of ${name} say ${sums.get(name)}, the chain ${after! - before!}`)
    outcome.sums++
  }
  for (const owner of everyone) {
    const [before, after] = [start.number, target].map((at) =>
      heldBy(dev, jetton.holderOf(owner), at),
    )
    const sum = tokenSums.get(owner.toRawString()) ?? 0n
    if (after! - before! !== sum)
      throw new Error(
        `the records of tokens of ${owner.toRawString()} say ${sum}, the chain ${after! - before!}`,
      )
    outcome.tokenSums++
  }
  outcome.blocks = target - start.number
  for (let seqno = start.number + 1; seqno <= target; seqno++)
    outcome.shardBlocks += dev.chain.store.blocksOf(seqno).length - 1
  outcome.transfers = seen.length
  outcome.bounces = bounced.length
  outcome.accountsInBalance = truth.accounts
  await chain.stop()
  await dev.stop()
  return outcome
}

/** Every one, and each once. */
const compare = (what: string, seen: readonly string[], truth: readonly string[]): void => {
  const [mine, theirs] = [seen.toSorted().join('\n'), truth.toSorted().join('\n')]
  if (mine !== theirs || new Set(seen).size !== seen.length)
    throw new Error(
      `${what}: ${seen.length} seen (${new Set(seen).size} different), ${truth.length} made`,
    )
}

if (import.meta.main) {
  const { seed: first, seeds } = readNumbers({ seeds: 100, seed: 1 })
  const sums: Record<string, number> = {}
  for (let seed = first; seed < first + seeds; seed++) {
    try {
      for (const [key, count] of Object.entries(await runTonSeed(seed)))
        sums[key] =
          key === 'mostShards' ? Math.max(sums[key] ?? 0, count) : (sums[key] ?? 0) + count
    } catch (error) {
      console.error(`seed ${seed}:`, error)
      process.exitCode = 1
    }
  }
  console.log(sums)
}
