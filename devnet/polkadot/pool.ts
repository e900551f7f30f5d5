import type { Applied, Block } from './author.ts'
import { fromHex, hash256, toHex } from './bytes.ts'
import type { Code } from './code.ts'
import { RpcError } from './rpc.ts'
import { createOverlay, type State } from './state.ts'

/** The extrinsics that wait for a block. */
export type Pool = {
  size(): number
  list(): Uint8Array[]
  /** Checks an extrinsic with the runtime and takes it; gives its hash. */
  submit(extrinsic: Uint8Array): string
  /** Offers them to a block in the order in which they came, until nothing more goes in. */
  applyTo(apply: (extrinsic: Uint8Array) => Applied): void
  onSubmit(listen: () => void): () => void
}

const most = 8_192

/** Makes the pool of a chain. */
export function createPool(chain: { best(): Block; codeOf(state: State): Code }): Pool {
  const waiting = new Map<string, Uint8Array>()
  const listeners = new Set<() => void>()

  const check = (extrinsic: Uint8Array): void => {
    const { state, hash } = chain.best()
    // From outside (2), at the best block.
    const input = Buffer.concat([Uint8Array.of(2), extrinsic, fromHex(hash)])
    let result: Uint8Array
    try {
      result = chain
        .codeOf(state)
        .call('TaggedTransactionQueue_validate_transaction', input, createOverlay(state))
    } catch (error) {
      throw new RpcError(1002, 'Verification Error: Runtime error', `${error}`)
    }
    if (result[0] !== 0) throw new RpcError(1010, 'Invalid Transaction', toHex(result.subarray(1)))
  }

  return {
    size: () => waiting.size,
    list: () => [...waiting.values()],
    submit: (extrinsic) => {
      const hash = toHex(hash256(extrinsic))
      if (waiting.has(hash)) throw new RpcError(1013, 'Transaction Already Imported', hash)
      if (waiting.size >= most) throw new RpcError(1016, 'Immediately Dropped')
      check(extrinsic)
      waiting.set(hash, extrinsic)
      for (const listen of listeners) listen()
      return hash
    },
    applyTo: (apply) => {
      for (let went = true; went; ) {
        went = false
        for (const [hash, extrinsic] of waiting) {
          const applied = apply(extrinsic)
          if (applied !== 'later') waiting.delete(hash)
          if (applied === 'in') went = true
        }
      }
    },
    onSubmit: (listen) => {
      listeners.add(listen)
      return () => void listeners.delete(listen)
    },
  }
}
