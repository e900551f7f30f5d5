import { LRUCache } from 'lru-cache'
import { BlockMissingError } from '../chain.ts'
import { type Codecs, createCodecs } from './codecs.ts'
import { executedByKey } from './keys.ts'
import type { PolkadotNodes } from './nodes.ts'
import { readCompact, skipCompact } from './scale.ts'
import type { Values } from './storage.ts'

/** A block with what stands in the state after it. */
export type Executed = {
  block: { number: number; hash: string }
  /** Asked for only when the runtime is new. */
  parentHash: string | ((signal: AbortSignal) => Promise<string>)
  /** With the version of the runtime that executed it. */
  values: Values
}

/** The codecs of the runtimes of a chain. */
export type Runtimes = {
  /** Those of the runtime that executed a block. */
  codecsOf(executed: Executed, signal: AbortSignal): Promise<Codecs>
}

type Version = { specName: string; specVersion: number }

// Metadata of a runtime takes megabytes, and following needs the newest one or two.
const most = 8

/** Makes the store of codecs: one per version, made when a block of it is met. */
export function createRuntimes(options: {
  nodes: PolkadotNodes
  onCodecs(codecs: Codecs): void
  /** The signal of the chain: the first caller may abort while others wait for the same metadata. */
  stopping: AbortSignal
}): Runtimes {
  const { nodes, onCodecs, stopping } = options
  const known = new LRUCache<string, Promise<Codecs>>({ max: most })

  const load = async (version: Version | undefined, executed: Executed, signal: AbortSignal) => {
    const { block } = executed
    // The code that executed a block is the one in its parent's state.
    const parent = await parentOf(executed, signal)
    const at = await askMetadata(nodes, parent, signal).catch(async (error: unknown) => {
      if (!(error instanceof BlockMissingError)) throw error
      // At the edge of what a node keeps: its own state has the code too, unless it was exchanged.
      const own = await askVersion(nodes, block, signal)
      if (!version || keyOf(own) !== keyOf(version)) throw error
      return await askMetadata(nodes, block, signal)
    })
    const codecs = createCodecs(at)
    onCodecs(codecs)
    return codecs
  }

  return {
    codecsOf: async (executed, signal) => {
      const version =
        readExecutedBy(executed.values.get(executedByKey)) ??
        (await askVersion(nodes, await parentOf(executed, signal), signal))
      const key = keyOf(version)
      let codecs = known.get(key)
      if (!codecs) {
        // Under the signal of the chain: the first caller may leave while others wait.
        codecs = load(version, executed, stopping)
        known.set(key, codecs)
        // A failure is not remembered.
        codecs.catch(() => known.delete(key))
      }
      return await untilAborted(codecs, signal)
    },
  }
}

/** The first block was not executed: its own state has the code. */
async function parentOf({ block, parentHash }: Executed, signal: AbortSignal) {
  if (block.number === 0) return block
  const hash = typeof parentHash === 'string' ? parentHash : await parentHash(signal)
  return { number: block.number - 1, hash }
}

/** The result, or the signal's reason when that comes first. */
function untilAborted<result>(promise: Promise<result>, signal: AbortSignal): Promise<result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.finally(() => signal.removeEventListener('abort', onAbort)).then(resolve, reject)
  })
}

const keyOf = ({ specName, specVersion }: Version) => `${specName}/${specVersion}`

/** `System.LastRuntimeUpgrade`: a compact version and a name. */
function readExecutedBy(hex: string | null | undefined): Version | undefined {
  if (!hex) return undefined
  const bytes = Buffer.from(hex.slice(2), 'hex')
  const at = skipCompact(bytes, 0)
  const begin = skipCompact(bytes, at)
  const specName = bytes.subarray(begin, begin + readCompact(bytes, at)).toString()
  return { specName, specVersion: readCompact(bytes, 0) }
}

const askVersion = (
  nodes: PolkadotNodes,
  { number, hash }: { number: number; hash: string },
  signal: AbortSignal,
): Promise<Version> =>
  nodes.ask({
    method: 'state_getRuntimeVersion',
    params: [hash],
    reached: number,
    stateOf: number,
    signal,
    accept: (result) => {
      const { specName, specVersion } = result as Partial<Version>
      return typeof specName === 'string' && typeof specVersion === 'number'
        ? { specName, specVersion }
        : undefined
    },
  })

/** The metadata in the form that every node gives; version 14 says all that is needed here. */
const askMetadata = (
  nodes: PolkadotNodes,
  { number, hash }: { number: number; hash: string },
  signal: AbortSignal,
): Promise<Buffer> =>
  nodes.ask({
    method: 'state_getMetadata',
    params: [hash],
    reached: number,
    stateOf: number,
    signal,
    accept: (result) => {
      const bytes = Buffer.from(String(result).slice(2), 'hex')
      return bytes.subarray(0, 4).toString() === 'meta' ? bytes : undefined
    },
  })
