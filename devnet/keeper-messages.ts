import type { DevChain } from './dev-chain.ts'

/** The local chains by their tag. */
export type DevTag = 'c' | 'q' | 't' | 's' | 'p'

/** All of them, in the order in which they are shown. */
export const devTags: readonly DevTag[] = ['c', 'q', 't', 's', 'p']

/** Token contracts for the traffic of an EVM chain. */
export type DevContracts = { erc20: string; erc721: string }

/** What is known of a local chain once it runs. */
export type DevFacts = Pick<
  DevChain,
  'node_url' | 'node_ws_url' | 'faucet_address' | 'faucet_key'
> & { contracts?: DevContracts }

/** Messages to the keeper of the local chains. */
export type ToKeeper =
  | { kind: 'fund'; id: number; chain: DevTag; address: string; amount: string }
  | { kind: 'reorganize'; id: number; depth: number }
  | { kind: 'mine'; id: number; chain: DevTag; blocks: number }
  /** Ends a node, or starts it again with its state and at its address. */
  | { kind: 'stop'; id: number; chain: DevTag }
  | { kind: 'start'; id: number; chain: DevTag }
  /** The addresses that something is sent to every few seconds. */
  | { kind: 'traffic'; targets: Partial<Record<DevTag, string>> }

/** Messages of the keeper. */
export type FromKeeper =
  /** The programs of these chains come over the network first. */
  | { kind: 'fetching'; chains: DevTag[] }
  | { kind: 'started'; chain: DevTag; facts: DevFacts }
  | { kind: 'failed'; chain: DevTag; reason: string }
  | { kind: 'ready' }
  | { kind: 'done'; id: number; result: string }
  | { kind: 'refused'; id: number; reason: string }
  | { kind: 'reorganized'; depth: number }
