// The account of a token is a contract of its own (TEP-74). Where its address can be computed, two get-methods per owner
// are saved, which nodes run one at a time.

import { Address, beginCell, Cell, contractAddress } from '@ton/core'
import type { Tokens } from '../tokens.ts'
import { bytesOf } from './cells.ts'
import { type GetMethods, readAddressItem, writeAddress } from './get-methods.ts'

type FindAccounts = NonNullable<Tokens['findAccounts']>

const ownersAtOnce = 16
// Of fewer owners the master is asked for each.
const fewOwners = 4

/**
 * Finds the jetton wallets of owners. The address of a jetton wallet is the hash of its first code and
 * data. Where these have a usual form, addresses are computed: nodes answer one get-method at a time,
 * and a page of a hundred owners needs three of them instead of two hundred. The master confirms two.
 */
export const createFindAccounts =
  ({ methods }: { methods: Pick<GetMethods, 'run'> }): FindAccounts =>
  async ({ contract_address: master }, owners, signal) => {
    if (owners.length > fewOwners) {
      const compute = await findForm(methods, { master, owners, signal })
      if (compute) return owners.map(compute)
    }
    const found: (Buffer | undefined)[] = owners.map(() => undefined)
    // Reversed, because `pop` takes from the end and the first owners are wanted first.
    const left = [...owners.entries()].reverse()
    const work = async (): Promise<void> => {
      for (let next = left.pop(); next; next = left.pop()) {
        signal.throwIfAborted()
        found[next[0]] = await findOne(methods, { master, owner: next[1], signal })
      }
    }
    await Promise.all(Array.from({ length: Math.min(ownersAtOnce, owners.length) }, work))
    return found
  }

/**
 * Asks the master for one jetton wallet. What is deployed there must say the same: a master can name any
 * account, and one of another token would be counted twice.
 */
async function findOne(
  methods: Pick<GetMethods, 'run'>,
  { master, owner, signal }: { master: Buffer; owner: Buffer; signal: AbortSignal },
): Promise<Buffer | undefined> {
  const account = await nameOf(methods, { master, owner, signal })
  if (!account) return undefined
  const held = await methods.run(account, 'get_wallet_data', [], { signal })
  const [itsOwner, itsMaster] = [readAddressItem(held?.[1]), readAddressItem(held?.[2])]
  const isOther = (itsOwner && !itsOwner.equals(owner)) || (itsMaster && !itsMaster.equals(master))
  return isOther ? undefined : account
}

async function nameOf(
  methods: Pick<GetMethods, 'run'>,
  { master, owner, signal }: { master: Buffer; owner: Buffer; signal: AbortSignal },
): Promise<Buffer | undefined> {
  const stack = [writeAddress(owner)]
  const named = await methods.run(master, 'get_wallet_address', stack, { signal })
  return readAddressItem(named?.[0])
}

type Form = (parts: { owner: Address; master: Address; code: Cell }) => Cell

/** The first data of a jetton wallet: without tokens, and with its owner and master. */
const forms: readonly Form[] = [
  // The reference implementation of TEP-74 keeps its own code.
  ({ owner, master, code }) =>
    beginCell().storeCoins(0).storeAddress(owner).storeAddress(master).storeRef(code).endCell(),
  // Newer implementations do not.
  ({ owner, master }) =>
    beginCell().storeCoins(0).storeAddress(owner).storeAddress(master).endCell(),
  // Tokens with an issuer who can lock wallets begin with a status.
  ({ owner, master }) =>
    beginCell().storeUint(0, 4).storeCoins(0).storeAddress(owner).storeAddress(master).endCell(),
]

/**
 * The function that computes jetton wallets, if a form gives what the master says for the first and the
 * last owner. The data names owner and master, so that no other token or owner has the same account.
 */
async function findForm(
  methods: Pick<GetMethods, 'run'>,
  { master, owners, signal }: { master: Buffer; owners: readonly Buffer[]; signal: AbortSignal },
): Promise<((owner: Buffer) => Buffer) | undefined> {
  // Two probes: a form that fits one owner by chance does not fit the other.
  const probes = [owners[0]!, owners.at(-1)!]
  const [data, ...named] = await Promise.all([
    methods.run(master, 'get_jetton_data', [], { signal }),
    ...probes.map((owner) => nameOf(methods, { master, owner, signal })),
  ])
  const code = data?.[4]
  if (!(code instanceof Cell)) return undefined
  const issuer = toAddress(master)
  for (const form of forms) {
    const compute = (owner: Buffer): Buffer => {
      const first = { code, data: form({ owner: toAddress(owner), master: issuer, code }) }
      return bytesOf(contractAddress(issuer.workChain, first))
    }
    if (probes.every((owner, at) => named[at]?.equals(compute(owner)))) return compute
  }
  return undefined
}

const toAddress = (bytes: Buffer): Address => new Address(bytes.readInt8(0), bytes.subarray(1))
