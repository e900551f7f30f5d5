// Claims about transactions that no digest of the checkpoint's messages binds: amounts, sender and gas payer. They are
// verified (`verification: full`) for the transactions that concern tracked accounts, after the look-up has found
// these accounts, because it costs two more requests: one for the objects, one for the transactions.

import { bcs } from '@mysten/sui/bcs'
import { normalizeSuiAddress } from '@mysten/sui/utils'
import { BlockForgedError, BlockMissingError, type Tracked, UnreadableError } from '../chain.ts'
import { NodeFault } from '../nodes/fault.ts'
import type { VerificationCounts } from '../verification.ts'
import {
  changesOf,
  coinKey,
  countedIn,
  type Effects,
  isObject,
  type ObjectVersion,
  ownersOf,
  UnknownObjectError,
} from './amounts.ts'
import type { NodeClaims } from './checkpoint.ts'
import type { Given } from './feed.ts'
import type { SuiNodes } from './nodes.ts'
import { digestOf } from './summary.ts'

// Requests of a few hundred kilobytes at most: a coin has about 200 bytes.
const objectsAtOnce = 200
const transactionsAtOnce = 50

/** Makes the claims of checkpoints, with the effects of their transactions. */
export function createNodeClaims({
  nodes,
  counts,
}: {
  nodes: SuiNodes
  counts: VerificationCounts
}) {
  /** Asks for parts in pages; each part must pass its test, or another node is asked. */
  const fetchAll = async <wanted, part>(
    { what, number, page }: { what: string; number: number; page: number },
    all: readonly wanted[],
    fetch: (
      node: Given['node'],
      some: wanted[],
      signal: AbortSignal,
    ) => Promise<(part | undefined)[]>,
    isRight: (part: part, wanted: wanted) => boolean,
    signal: AbortSignal,
  ): Promise<part[]> => {
    const found: part[] = []
    for (let at = 0; at < all.length; at += page) {
      const some = all.slice(at, at + page)
      const parts = await nodes.ask({ reached: number }, signal, async (node, limited) => {
        const given = await fetch(node, some, limited)
        return some.map((wanted, index): part => {
          const part = given[index]
          if (part === undefined)
            throw new NodeFault('missing', `${what} of checkpoint ${number} are not kept`)
          if (isRight(part, wanted)) return part
          const reason = `${what} of checkpoint ${number} do not have their digests`
          counts.refuse(what, reason)
          throw new NodeFault('invalid', reason)
        })
      })
      found.push(...parts)
    }
    return found
  }

  return ({ checkpoint, node }: Given, effects: readonly (Effects | undefined)[]): NodeClaims => {
    const number = Number(checkpoint.sequenceNumber)
    const { transactions } = checkpoint
    // Kept over rounds: an address that is registered meanwhile adds its transactions only.
    const done = new Set<number>()
    // Owners that only the effects name count too: a node could have left out their balance change.
    const pendingOf = ({ accounts }: Tracked): number[] => {
      const verdicts = new Map<string, boolean>()
      const isTracked = (address: string): boolean => {
        let verdict = verdicts.get(address)
        if (verdict === undefined) {
          verdict = accounts.has(Buffer.from(address.slice(2), 'hex'))
          verdicts.set(address, verdict)
        }
        return verdict
      }
      return transactions.flatMap((one, index) => {
        if (done.has(index)) return []
        const parties = [one.transaction?.sender ?? '', one.transaction?.gasPayment?.owner ?? '']
        const isConcerned =
          parties.some(isTracked) ||
          one.balanceChanges.some(({ address = '' }) => isTracked(address)) ||
          [...(effects[index] ? ownersOf(effects[index]) : [])].some(isTracked)
        return isConcerned ? [index] : []
      })
    }
    const refuse = (kind: string, reason: string): never => {
      // Accused before the error: the same node must not be asked for the block again at once.
      counts.refuse(kind, reason)
      nodes.distrust(node, reason)
      throw new BlockForgedError(`${kind}: ${reason}`)
    }

    const checkAmounts = async (pending: readonly number[], signal: AbortSignal) => {
      const counted = (index: number): Effects | undefined => {
        const addresses = transactions[index]!.balanceChanges.map(({ address = '' }) => address)
        return effects[index] && countedIn(effects[index], new Set(addresses))
      }
      const wanted = new Map<string, ObjectVersion>()
      for (const index of pending) {
        const { before = [], after = [] } = counted(index) ?? {}
        for (const one of [...before, ...after]) wanted.set(one.digest, one)
      }
      const versions = [...wanted.values()]
      const found = await fetchAll(
        { what: 'objects', number, page: objectsAtOnce },
        versions,
        (from, some, limited) => from.client.objects(some, limited),
        (bytes, { digest }) => isObject(bytes, digest),
        signal,
      )
      const bytes = new Map(versions.map(({ digest }, index) => [digest, found[index]!]))
      for (const index of pending) {
        const { digest, balanceChanges } = transactions[index]!
        const known = counted(index)
        // The validators signed effects from which no amounts can be derived: no node can prove them.
        if (!known) {
          counts.check('unproven_amounts')
          continue
        }
        const proven = provenChanges(known, (one) => bytes.get(one))
        if (!proven) {
          counts.check('unproven_amounts')
          continue
        }
        const claimed = new Map(
          balanceChanges.map(({ address = '', coinType = '', amount }) => [
            coinKey(address, coinType),
            amount,
          ]),
        )
        // Both directions: a change that is left out is as false as one that is added.
        const isSame =
          claimed.size === balanceChanges.length &&
          claimed.size === proven.size &&
          proven.entries().every(([key, amount]) => claimed.get(key) === String(amount))
        if (!isSame) refuse('amounts', `transaction ${digest} has other balance changes`)
        counts.check('amounts')
      }
    }
    const checkParties = async (pending: readonly number[], signal: AbortSignal) => {
      const digests = pending.map((index) => transactions[index]!.digest ?? '')
      const found = await fetchAll(
        { what: 'transactions', number, page: transactionsAtOnce },
        digests,
        (from, some, limited) => from.client.transactions(some, limited),
        (bytes, digest) => digestOf('TransactionData', bytes) === digest,
        signal,
      )
      for (const [at, index] of pending.entries()) {
        const { digest, transaction } = transactions[index]!
        const parties = partiesOf(found[at]!)
        // A form that the SDK cannot read proves nothing. It is counted, so that the operator sees it.
        if (!parties) {
          counts.check('unproven_parties')
          continue
        }
        const { sender, payer } = parties
        if (transaction?.sender !== sender || (transaction.gasPayment?.owner ?? sender) !== payer)
          refuse('parties', `transaction ${digest} has another sender or gas payer`)
        counts.check('parties')
      }
    }

    return {
      *owners() {
        for (const one of effects) if (one) yield* ownersOf(one)
      },
      needsCheck: (tracked) => pendingOf(tracked).length > 0,
      check: async (tracked, signal) => {
        const pending = pendingOf(tracked)
        try {
          await Promise.all([checkAmounts(pending, signal), checkParties(pending, signal)])
        } catch (error) {
          if (!(error instanceof BlockMissingError)) throw error
          throw new UnreadableError(`checkpoint ${number} cannot be verified: ${error.message}`)
        }
        for (const index of pending) done.add(index)
      },
    }
  }
}

/** Undefined where an object has a form that the SDK cannot read: the amounts can be derived by a later version only. */
function provenChanges(...known: Parameters<typeof changesOf>): Map<string, bigint> | undefined {
  try {
    return changesOf(...known)
  } catch (error) {
    if (error instanceof UnknownObjectError) return undefined
    throw error
  }
}

/** Who signed a transaction and who pays for it; undefined for a form that the SDK cannot read. */
function partiesOf(bytes: Uint8Array): { sender: string; payer: string } | undefined {
  try {
    const { sender, gasData } = bcs.TransactionData.parse(bytes).V1
    return { sender: normalizeSuiAddress(sender), payer: normalizeSuiAddress(gasData.owner) }
  } catch {
    return undefined
  }
}
