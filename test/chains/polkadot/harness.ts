import type { Block } from '../../../devnet/polkadot/author.ts'
import { hash256, readUint, storageKey, toHex } from '../../../devnet/polkadot/bytes.ts'
import {
  type PolkadotDevChain,
  type PolkadotDevChainOptions,
  startPolkadotDevChain,
} from '../../../devnet/polkadot/node.ts'
import { accountKey } from '../../../devnet/polkadot/spec.ts'
import {
  type BlockRef,
  type Chain,
  type ChainBlock,
  ChainUnavailableError,
  type Movement,
} from '../../../src/chains/chain.ts'
import type { BalanceEvent } from '../../../src/chains/polkadot/balance-event.ts'
import {
  createPolkadotChain,
  type PolkadotChainOptions,
} from '../../../src/chains/polkadot/chain.ts'
import { createCodecs } from '../../../src/chains/polkadot/codecs.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'

/** A signal that is never aborted. */
export const never = new AbortController().signal

/** A dev node with short ways to make transactions on it. */
export type Harness = PolkadotDevChain & {
  account(number: number): Buffer
  /** A call's argument that names an account by its number. */
  to(number: number): { type: 'Id'; value: string }
  /** A signed call of the account with that number. */
  signed(from: number, pallet: string, call: string, value: unknown, nonce?: number): Buffer
  pay(from: number, to: number, value: bigint, nonce?: number): Buffer
  /** A transfer as a call inside another one. */
  inner(to: number, value: bigint): unknown
  /** The hash of an extrinsic, as the chain's explorers print it. */
  hashOf(extrinsic: Uint8Array): string
  openChain(options?: Partial<PolkadotChainOptions>): Chain
}

/** Starts a dev node that makes blocks on command. */
export async function startHarness(options: PolkadotDevChainOptions = {}): Promise<Harness> {
  const node = await startPolkadotDevChain({ manual: true, ...options })
  const account = (number: number) => Buffer.from(node.signer(number).account)
  const to = (number: number) => ({ type: 'Id' as const, value: node.address(account(number)) })
  const signed: Harness['signed'] = (from, pallet, call, value, nonce) =>
    node.sign({
      signer: node.signer(from),
      pallet,
      call,
      value,
      ...(nonce !== undefined && { nonce }),
    })
  return {
    ...node,
    account,
    to,
    signed,
    pay: (from, dest, value, nonce) =>
      signed(from, 'Balances', node.transferCall, { dest: to(dest), value }, nonce),
    inner: (dest, value) => ({
      type: 'Balances',
      value: { type: 'transfer_keep_alive', value: { dest: to(dest), value } },
    }),
    hashOf: (extrinsic) => toHex(hash256(extrinsic)),
    openChain: (more = {}) =>
      createPolkadotChain({
        upstreams: [{ url: node.node_url }],
        pollMs: 200,
        // On a busy machine even a connection to the next process takes its time.
        waitMs: 15_000,
        ...more,
      }),
  }
}

/**
 * Follows from a position until a number is reached, and continues where it was when no node answered
 * for a while, as the tracker does. Fails on anything but blocks.
 */
export async function followTo(
  chain: Chain,
  after: BlockRef,
  number: number,
  timeoutMs = 30_000,
): Promise<ChainBlock[]> {
  const taken: ChainBlock[] = []
  const signal = AbortSignal.timeout(timeoutMs)
  const follow = async () => {
    for await (const event of chain.follow(taken.at(-1) ?? after, signal)) {
      if (event.kind !== 'blocks') throw new Error(`unexpected ${event.kind}`)
      taken.push(...event.blocks)
      if (taken.at(-1)!.number >= number) return
    }
  }
  while ((taken.at(-1) ?? after).number < number)
    await follow().catch((error: unknown) => {
      if (!(error instanceof ChainUnavailableError)) throw error
    })
  return taken.filter((block) => block.number <= number)
}

/** What a block holds for some accounts. */
export const contentOf = (block: ChainBlock, accounts: readonly Buffer[]) =>
  block.decode({
    accounts: createByteSet(accounts),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  })

/** A block's name as the port has it. */
export const refOf = ({ number, hash }: Pick<Block, 'number' | 'hash'>): BlockRef => ({
  number,
  hash: Buffer.from(hash.slice(2), 'hex'),
})

/** What an account's balance did according to the movements of a block, fees left out. */
export const netOf = (account: Buffer, movements: readonly Movement[]): bigint =>
  movements.reduce(
    (sum, { from, to, value }) =>
      sum + (to.equals(account) ? value : 0n) - (from.equals(account) ? value : 0n),
    0n,
  )

/** The fees that the movements of a block say an account paid. */
export const feesOf = (account: Buffer, movements: readonly Movement[]): bigint =>
  movements.reduce(
    (sum, { from, detail, transaction_fee }) =>
      sum + (from.equals(account) && detail?.pays_fee === true ? transaction_fee : 0n),
    0n,
  )

/** What an account has on the best block, straight from the state. */
export function readBalanceOf({ chain }: PolkadotDevChain, account: Uint8Array): bigint {
  const stored = chain.best().state.get(accountKey(account))
  if (!stored) return 0n
  // Four counters of four bytes, then free and reserved.
  return readUint(stored.subarray(16, 32)) + readUint(stored.subarray(32, 48))
}

/** The events of a block that matter for balances, by the metadata of the runtime that made it. */
export function eventsOf({ chain }: PolkadotDevChain, block: Block): BalanceEvent[] {
  const { metadata } = chain.codeOf(block.state)
  const stored = block.state.get(storageKey('System', 'Events'))!
  return createCodecs(metadata).readEvents(Buffer.from(stored))
}
