// Verifies what nodes say of checkpoints (`verification: full`). A quorum of the committee of an epoch has
// signed the summary of a checkpoint. The summary commits to the one before it, to the transactions and, through
// those, to their effects; the last one of an epoch names the next committee. One certificate proves
// all linked checkpoints before it, so that a page costs one pairing. Balance changes, senders and gas payers are
// verified by `node-claims.ts`. Balances have no proof.
import type { GrpcTypes } from '@mysten/sui/grpc'
import type { Log } from '../../lib/log.ts'
import { BlockForgedError, ChainUnavailableError } from '../chain.ts'
import { toHex } from '../hex.ts'
import { createVerificationCounts, type VerificationStatus } from '../verification.ts'
import { type Effects, type ParsedEffects, parseEffects, readEffects } from './amounts.ts'
import { type NodeClaims, toHeader } from './checkpoint.ts'
import { type Committee, createCommittees } from './committee.ts'
import type { Given } from './feed.ts'
import { createNodeClaims } from './node-claims.ts'
import type { SuiNodes } from './nodes.ts'
import { digestOf, type Member, readContents, readSummary, type Summary } from './summary.ts'

/** A checkpoint from which on committees are followed: `number:digest`, the last one of an epoch. */
export type TrustedCheckpoint = { number: number; digest: string }

/** Verifies checkpoints before they are used. */
export type Verifier = {
  /** Throws BlockForgedError where one of them cannot be true, and distrusts the node that gave it. */
  check(given: readonly Given[], signal: AbortSignal): Promise<void>
  /** What is still to be verified of a checkpoint that passed `check`. */
  claimsOf(given: Given): NodeClaims
  status(): VerificationStatus
}

/** What was claimed and cannot be true. */
class Lie extends Error {
  readonly kind: string
  constructor(kind: string, message: string) {
    super(message)
    this.kind = kind
  }
}

const committeeTimeoutMs = 10_000
// Epochs last a day; a process that runs for a month needs no more.
const mostCommittees = 32

/** Starts without a committee: the first checkpoint decides which is needed. */
export function createVerifier({
  nodes,
  log,
  trusted,
}: {
  nodes: SuiNodes
  log: Log
  trusted?: TrustedCheckpoint | undefined
}): Verifier {
  const createCommittee = createCommittees()
  const committees = new Map<number, Committee>()
  const counts = createVerificationCounts('full')
  const createClaimsOf = createNodeClaims({ nodes, counts })
  // Parsed once and used again by the claims, for as long as the checkpoint itself lives.
  const effectsOf = new WeakMap<GrpcTypes.Checkpoint, readonly (Effects | undefined)[]>()
  let anchor: string | null = null
  /** The epoch whose committee no checkpoint proves. */
  let unproven: number | undefined

  /** The oldest one leaves when there are too many; an old checkpoint then asks for it again. */
  const addCommittee = (committee: Committee): Committee => {
    committees.set(committee.epoch, committee)
    for (const epoch of committees.keys()) {
      if (committees.size <= mostCommittees) break
      committees.delete(epoch)
    }
    return committee
  }
  const fetchSummary = async (number: number, signal: AbortSignal) => {
    const given = await nodes.ask({ has: number }, signal, async (node, limited) => ({
      node,
      checkpoint: await node.client.checkpoint(number, limited),
    }))
    return { ...given, summary: summaryOf(given.checkpoint) }
  }

  /** From the checkpoint of the configuration, or from a node where there is none. */
  const findAnchor = async (epoch: number, signal: AbortSignal): Promise<void> => {
    if (trusted) {
      const { checkpoint, summary } = await fetchSummary(trusted.number, signal)
      if (checkpoint.digest !== trusted.digest)
        throw new Lie('trusted_checkpoint', `checkpoint ${trusted.number} is not the trusted one`)
      if (!summary.nextCommittee)
        throw new Lie('trusted_checkpoint', `checkpoint ${trusted.number} does not end an epoch`)
      // A later one would prove nothing about an earlier epoch: certificates lead forward only.
      if (summary.epoch < epoch) {
        anchor = `checkpoint ${trusted.number}`
        addCommittee(createCommittee(summary.epoch + 1, summary.nextCommittee))
        return
      }
    }
    anchor = `committee of epoch ${epoch}, as nodes said`
    log.warn({ epoch }, 'committee of Sui taken from nodes without proof')
    addCommittee(createCommittee(epoch, await askMembers(epoch, signal)))
    unproven = epoch
  }

  /** What most nodes say. */
  const askMembers = async (epoch: number, signal: AbortSignal): Promise<readonly Member[]> => {
    const answers = await nodes.askAll({
      signal,
      timeoutMs: committeeTimeoutMs,
      ask: ({ client }, limited) => client.committee(epoch, limited),
    })
    const votes = new Map<string, { members: readonly Member[]; count: number }>()
    for (const { answer } of answers) {
      if (!answer) continue
      const name = answer.map(({ key, power }) => `${toHex(key)} ${power}`).join()
      votes.set(name, { members: answer, count: (votes.get(name)?.count ?? 0) + 1 })
    }
    const [first] = [...votes.values()].toSorted((a, b) => b.count - a.count)
    if (!first) throw new ChainUnavailableError(`no node names the committee of epoch ${epoch}`)
    return first.members
  }

  const committeeOf = async (epoch: number, signal: AbortSignal): Promise<Committee> => {
    const known = () => [...committees.keys()].filter((one) => one <= epoch)
    if (known().length === 0) await findAnchor(epoch, signal)
    for (let at = Math.max(...known()); at < epoch; at++) {
      const last = await nodes.ask({ full: true }, signal, ({ client }, limited) =>
        client.lastOf(at, limited),
      )
      const { checkpoint, summary } = await fetchSummary(last, signal)
      certify(checkpoint, summary, committees.get(at)!)
      if (!summary.nextCommittee) throw new Lie('epoch', `checkpoint ${last} does not end an epoch`)
      addCommittee(createCommittee(at + 1, summary.nextCommittee))
    }
    return committees.get(epoch)!
  }

  const certify = (
    checkpoint: GrpcTypes.Checkpoint,
    summary: Summary,
    committee: Committee,
  ): void => {
    const { signature, bitmap, epoch } = checkpoint.signature ?? {}
    if (!signature || !bitmap || epoch === undefined)
      throw new Lie('certificate', `checkpoint ${summary.number} has no certificate`)
    const refusal = committee.refusal({
      epoch: Number(epoch),
      summary: checkpoint.summary!.bcs!.value!,
      signature,
      signers: bitmap,
    })
    if (refusal) {
      // The committee may be the lie: it is asked for again.
      if (summary.epoch === unproven) committees.delete(unproven)
      throw new Lie('certificate', `checkpoint ${summary.number}: ${refusal}`)
    }
    counts.check('certificates')
  }

  const checkRun = async (run: readonly Given[], signal: AbortSignal): Promise<void> => {
    const summaries = run.map(({ checkpoint }) => {
      const summary = summaryOf(checkpoint)
      const effects = checkContents(checkpoint, summary)
      effectsOf.set(checkpoint, effects)
      counts.check('transactions', effects.length)
      return summary
    })
    for (const [index, summary] of summaries.entries()) {
      const isLinked = summaries[index + 1]?.previous === run[index]!.checkpoint.digest
      // What is linked is proved by the certificate of the next; the end of an epoch changes the keys.
      if (isLinked && !summary.nextCommittee) continue
      const { checkpoint } = run[index]!
      certify(checkpoint, summary, await committeeOf(summary.epoch, signal))
      if (summary.nextCommittee)
        addCommittee(createCommittee(summary.epoch + 1, summary.nextCommittee))
    }
    counts.check('checkpoints', run.length)
  }

  return {
    check: async (given, signal) => {
      try {
        await checkRun(given, signal)
      } catch (error) {
        if (!(error instanceof Lie)) throw error
        counts.refuse(error.kind, error.message)
        // Which node of the run has lied is not known; one that is honest is trusted again after a while.
        for (const node of new Set(given.map(({ node }) => node)))
          nodes.distrust(node, `${error.kind}: ${error.message}`)
        throw new BlockForgedError(`${error.kind}: ${error.message}`)
      }
    },
    claimsOf: (given) => createClaimsOf(given, effectsOf.get(given.checkpoint) ?? []),
    status: () => ({ ...counts.status(), anchor }),
  }
}

/** The summary by its bytes, which are what the digest and the certificate are of. */
function summaryOf(checkpoint: GrpcTypes.Checkpoint): Summary {
  const header = toHeader(checkpoint)
  const bytes = checkpoint.summary?.bcs?.value
  if (!bytes) throw new Lie('summary', `checkpoint ${header.number} has no summary`)
  if (digestOf('CheckpointSummary', bytes) !== checkpoint.digest)
    throw new Lie('summary', `checkpoint ${header.number} has another digest`)
  const summary = readSummary(bytes)
  const { previousDigest } = checkpoint.summary!
  if (
    summary.number !== header.number ||
    summary.time !== header.time ||
    summary.previous !== previousDigest
  )
    throw new Lie('summary', `checkpoint ${header.number} is not what its summary says`)
  return summary
}

/** That the transactions are those of the checkpoint, all of them, with their effects. Gives what the effects say. */
function checkContents(
  checkpoint: GrpcTypes.Checkpoint,
  { number, contents }: Summary,
): (Effects | undefined)[] {
  const bytes = checkpoint.contents?.bcs?.value
  if (!bytes || digestOf('CheckpointContents', bytes) !== contents)
    throw new Lie('contents', `checkpoint ${number} has other contents`)
  const listed = readContents(bytes)
  const { transactions } = checkpoint
  if (
    listed.length !== transactions.length ||
    transactions.some(({ digest }, index) => digest !== listed[index]!.transaction)
  )
    throw new Lie('transactions', `checkpoint ${number} has other transactions`)
  return transactions.map(({ digest, effects }, index) => {
    const value = effects?.bcs?.value
    if (!value || digestOf('TransactionEffects', value) !== listed[index]!.effects)
      throw new Lie('effects', `transaction ${digest} has other effects`)
    const known = parseEffects(value)
    // Effects of a form that is not known yet say nothing.
    if (known && !isClaimOf(known, effects))
      throw new Lie('effects', `the effects of ${digest} differ`)
    return known && readEffects(known)
  })
}

/** Whether status and gas are what the effects say. */
function isClaimOf(known: ParsedEffects, claimed: GrpcTypes.TransactionEffects): boolean {
  const { status, gasUsed } = (known.V1 ?? known.V2)!
  const { computationCost = 0n, storageCost = 0n, storageRebate = 0n } = claimed.gasUsed ?? {}
  return (
    ('Success' in status && status.Success !== undefined) === (claimed.status?.success !== false) &&
    BigInt(gasUsed.computationCost) === computationCost &&
    BigInt(gasUsed.storageCost) === storageCost &&
    BigInt(gasUsed.storageRebate) === storageRebate
  )
}
