import { fromBufferToBase58, getSs58AddressInfo } from '@polkadot-api/substrate-bindings'
import type { DevChain, DevChainOptions } from '../dev-chain.ts'
import type { Block } from './author.ts'
import { fromHex, readUint } from './bytes.ts'
import { type ChainOptions, type Making, openChain, type PolkadotChain } from './chain.ts'
import { developmentSigners } from './development-accounts.ts'
import type { Method } from './rpc.ts'
import { startSealing } from './sealing.ts'
import { type Server, serveChain } from './server.ts'
import { createSigner, type Signer, seedOf, signCall } from './sign.ts'
import { accountKey, loadChainSpec } from './spec.ts'

/** What can be chosen besides. */
export type PolkadotDevChainOptions = DevChainOptions & {
  /** Blocks only when they are asked for, with a clock that goes by slots from a fixed day. */
  manual?: boolean
} & Partial<Pick<ChainOptions, 'spec' | 'finality' | 'history' | 'upgradeAt'>>

/** A call with the key that signs it. */
export type SignedCall = {
  signer: Signer
  pallet: string
  call: string
  value: unknown
  /** What the account has used on the best block, unless it is given. */
  nonce?: number
  tip?: bigint
}

/** A Polkadot dev node in this process. */
export type PolkadotDevChain = DevChain & {
  chain: PolkadotChain
  server: Server
  genesis_hash: string
  ss58_prefix: number
  /** The account that `fund` pays from. */
  funder_address: string
  /** What the runtime calls its plain transfer. */
  transferCall: string
  /** Keys by number; those below 10 have much from the beginning. */
  signer(number: number): Signer
  /** The address of an account on this chain. */
  address(account: Uint8Array): string
  sign(call: SignedCall): Buffer
  /** Makes that many blocks; what waits goes into the first one. */
  mine(count?: number): Block
  make(making?: Making): Block
  /** Replaces that many of the newest blocks by one more, without their transactions. */
  fork(depth: number, extrinsics?: readonly Uint8Array[]): Block
  /** Another endpoint of the same chain. */
  serve(port?: number): Promise<Server>
}

const firstDay = Date.UTC(2026, 0, 1)
const endowment = 10n ** 24n
const faucetNumber = 1_000_000
const richAccounts = 10
// The secret of //Alice, as every tool for Substrate derives it (sr25519).
const aliceKey = '0xe5be9a5092b81bca64be81d212e7f2f9eba183bb7a90954f7b76361f6edb5c0a'

/** Starts a node of a chain of its own that the real Asset Hub runtime executes. */
export async function startPolkadotDevChain(
  options: PolkadotDevChainOptions = {},
): Promise<PolkadotDevChain> {
  const { port, directory, seed = 0, blockTimeMs = 2_000, manual = false } = options
  const { finality, history, upgradeAt } = options
  const keyOf = (number: number) => createSigner(seedOf(seed, number))
  const faucet = createSigner(seedOf(seed, faucetNumber))
  const rich = Array.from({ length: richAccounts }, (_, number) => keyOf(number).account)
  const known = Object.values(developmentSigners()).map(({ account }) => account)
  const endowed = [faucet.account, ...rich, ...known]
  const chain = openChain({
    spec: options.spec ?? (await loadChainSpec()),
    endowments: endowed.map((account) => ({ account, amount: endowment })),
    // A chain that goes by slots is in the past, so that each block is one slot after the other.
    now: manual ? () => firstDay : Date.now,
    // One that people look at goes by the clock.
    ...(!manual && { leastMs: 1 }),
    ...(directory !== undefined && { directory }),
    ...(finality !== undefined && { finality }),
    ...(history !== undefined && { history }),
    ...(upgradeAt !== undefined && { upgradeAt }),
  })

  const sign: PolkadotDevChain['sign'] = ({ signer, pallet, call, value, nonce, tip }) => {
    const { state } = chain.best()
    const code = chain.codeOf(state)
    const stored = state.get(accountKey(signer.account)) ?? new Uint8Array()
    const used = Number(readUint(stored.slice(0, 4)))
    return signCall(code, code.encodeCall(pallet, call, value), {
      signer,
      nonce: nonce ?? used,
      genesis: chain.genesis,
      ...(tip !== undefined && { tip }),
    })
  }
  const { ss58Prefix: ss58_prefix, transferCall } = chain.codeOf(chain.best().state)
  const address = (account: Uint8Array) => fromBufferToBase58(ss58_prefix)(account)
  const make = (making?: Making) => chain.make(making)
  const mine = (count = 1): Block => {
    let block = chain.best()
    for (let left = count; left > 0; left--) block = chain.make()
    return block
  }
  const fork = (depth: number, extrinsics: readonly Uint8Array[] = []): Block => {
    const { number } = chain.best()
    const ancestor = chain.at(number - depth)
    if (!ancestor) throw new Error(`the chain has no ${depth} blocks to replace`)
    let block = chain.make({ parent: ancestor.hash, extrinsics, skip: 1 })
    while (block.number <= number) block = chain.make({ parent: block.hash, extrinsics: [] })
    return block
  }
  /** What is sent and sealed in one go needs no waiting for other senders. */
  const fund = (to: Uint8Array, amount: bigint): string => {
    const dest = { type: 'Id', value: address(to) }
    const value = { dest, value: amount }
    if (chain.pool.size() > 0) chain.make()
    const extrinsic = sign({ signer: faucet, pallet: 'Balances', call: transferCall, value })
    const hash = chain.pool.submit(extrinsic)
    const block = chain.make()
    if (!block.extrinsics.some((one) => extrinsic.equals(one)))
      throw new Error('the runtime did not take the transfer')
    return hash
  }

  const extra: Record<string, Method> = {
    dev_fund: (to: string, amount: string) => fund(accountOf(to), BigInt(amount)),
    dev_transfer: (from: number, to: string, amount: string, nonce?: number) =>
      chain.pool.submit(
        sign({
          signer: keyOf(from),
          pallet: 'Balances',
          call: transferCall,
          value: { dest: { type: 'Id', value: address(accountOf(to)) }, value: BigInt(amount) },
          ...(nonce !== undefined && nonce !== null && { nonce }),
        }),
      ),
    dev_mine: (count = 1) => mine(count).hash,
    dev_fork: (depth: number) => fork(depth).hash,
  }
  const server = await serveChain(chain, { extra, ...(port !== undefined && { port }) })
  const stopSealing = manual ? () => {} : startSealing(chain, { blockTimeMs })
  const servers = [server]

  return {
    node_url: server.url,
    // Not the account that `fund` pays from: a client that signs with this key counts its nonces alone.
    faucet_address: address(developmentSigners().Alice.account),
    faucet_key: aliceKey,
    fund: async (to, amount, signal) => {
      signal?.throwIfAborted()
      return fund(accountOf(to), amount)
    },
    chain,
    server,
    genesis_hash: chain.genesis,
    funder_address: address(faucet.account),
    ss58_prefix,
    transferCall,
    signer: keyOf,
    address,
    sign,
    mine,
    make,
    fork,
    serve: async (at) => {
      const other = await serveChain(chain, { extra, ...(at !== undefined && { port: at }) })
      servers.push(other)
      return other
    },
    stop: async () => {
      stopSealing()
      await Promise.all(servers.map((one) => one.stop()))
      chain.close()
    },
  }
}

/** The account of an SS58 address, or of an account id in hex. */
function accountOf(text: string): Uint8Array {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return fromHex(text)
  if (/^0x[0-9a-f]{40}$/.test(text)) return Buffer.concat([fromHex(text), Buffer.alloc(12, 0xee)])
  const info = getSs58AddressInfo(text)
  if (!info.isValid || info.publicKey.length !== 32) throw new Error(`not an address: ${text}`)
  return info.publicKey
}
