import type { Path } from '../../app/config/problem.ts'
import type {
  WalletAnswer,
  WalletOperation,
  WalletRequest,
} from '../../contract/operations/calls.ts'
import type { WalletService } from '../../contract/variant.ts'
import type { Local } from '../local.ts'
import type { Step } from './step.ts'

/** Reads with an operation of a chain for an organization. */
export type ReadChain = <name extends WalletOperation>(
  name: name,
  request: WalletRequest<name>,
) => Promise<WalletAnswer<name>>

/** The windows of a rate limit. */
export type Windows = Record<
  'per_second_limit' | 'per_hour_limit' | 'per_day_limit' | 'per_month_limit',
  number
>

/** What planning may use. It only reads, so that --plan shows exactly what a run would do. */
export type PlanTools = {
  local: Pick<Local, 'context' | 'run'>
  /** The limits of an organization without records. */
  defaults: Windows
  /** Whether a rate limit of this chain can apply. */
  isLimited(chain: string): boolean
  /** The wallet service of a chain of the configuration, as `base` or `base/sepolia`. */
  serviceAt(at: string): WalletService | undefined
  /** The operations of a chain for an organization that exists. */
  read(at: string, organization_id: string): ReadChain
  /** The value behind a literal or a reference. */
  secret(value: string, path: Path): string
  /** Takes a secret that is shown once. */
  onSecret(secret: ShownSecret): Promise<void>
  /** Reports a problem of the document; planning continues. */
  refuse(path: Path, rest: string): void
  prune: boolean
}

/** A secret that was made: the pair of a key, or the signing secret of a webhook. */
export type ShownSecret = { organization: string } & (
  | { key: string; api_key: string; api_secret: string }
  | { webhook: string; chain: string; signing_secret: string }
)

/** The steps that lead from what is stored to the document, by organization. */
export type Plan = {
  organizations: { domain: string; steps: Step[] }[]
  /** What is stored, not in the document, and stays. */
  extras: string[]
}

/** What one part of the document asks for. */
export type PlannedPart = { steps: Step[]; extras: string[] }
