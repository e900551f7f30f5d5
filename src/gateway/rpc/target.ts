import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Head, RawJson } from '../../chains/evm/pool/pool-types.ts'
import { jsonText, scanArray } from '../../lib/json/scan.ts'
import { isHash, isQuantity, toNumber } from './encodings.ts'
import type { RpcCall } from './envelope.ts'
import type { Method } from './methods.ts'

/** What exactly is asked of the nodes, and what the answer will depend on. */
export type BlockTarget = {
  /** Identical calls have the same; different ones never. */
  key: string
  params: RawJson
  /** -1 when any node will do. */
  minBlock: number
  /** The block that the answer depends on; -1 when none, or when only the answer names it. */
  number: number
  /** Its hash; empty when not known. */
  hash: string
  keep: 'never' | 'static' | 'block' | 'answer'
  /** `latest` was replaced by the head: if nodes do not have that block, `latest` may still work. */
  pinned: boolean
}

/** Asks as the client did, of nodes that are not behind what the key has seen. */
export const liveTarget = (method: Method, call: RpcCall, minBlock: number): BlockTarget => ({
  key: `${method.name}>${minBlock}${call.params}`,
  params: askedParams(method, call),
  minBlock,
  number: -1,
  hash: '',
  keep: 'never',
  pinned: false,
})

function askedParams({ plan }: Method, { args, params }: RpcCall): RawJson {
  if (plan.kind !== 'number' || !plan.isWritten || args[plan.index] != null) return params
  return setParam(params, plan.index, '"latest"')
}

/** The target of a method whose parameter names a block. */
export function numberTarget(options: {
  method: Method
  call: RpcCall
  index: number
  impliesLatest: boolean
  head: Head | undefined
  view: Canonical
  lowest: number
}): BlockTarget {
  const { method, call, index, impliesLatest, head, view, lowest } = options
  const block = call.args[index] ?? (impliesLatest ? 'latest' : undefined)
  if (typeof block !== 'string') return liveTarget(method, call, lowest)
  const number = block === 'earliest' ? 0 : isQuantity(block) ? toNumber(block) : -1
  // What is final does not depend on the head, nor on whether any node is there.
  const isFinal = number >= 0 && number <= view.final()
  if (!head && !isFinal) return liveTarget(method, call, lowest)
  if (head && block === 'latest')
    return {
      key: `${method.name}@${head.number}${call.params}`,
      // Written only when it is sent: a hit in the cache has no use for it.
      params: call.params,
      // A node below it would answer for an older block, or with an error.
      minBlock: head.number,
      number: head.number,
      hash: head.hash,
      keep: 'block',
      pinned: true,
    }
  if (isHash(block)) return hashTarget(method, call, block, view, lowest)
  if (number < 0 || (head && number > head.number)) return liveTarget(method, call, lowest)
  return {
    key: method.name + call.params,
    params: call.params,
    minBlock: number,
    number,
    hash: view.hashAt(number) ?? '',
    keep: 'block',
    pinned: false,
  }
}

/** The target of a method whose parameter is the hash of a block. */
export function hashTarget(
  method: Method,
  call: RpcCall,
  hash: string,
  view: Canonical,
  lowest: number,
): BlockTarget {
  const lower = hash.toLowerCase()
  const number = view.numberOf(lower) ?? -1
  return {
    key: method.name + call.params,
    params: call.params,
    minBlock: Math.max(lowest, number),
    number,
    hash: lower,
    keep: number >= 0 ? 'block' : 'answer',
    pinned: false,
  }
}

const latestAtEnd = '"latest"]'

/** The params of a call for `latest`, with the number of a block instead of it. */
export function pinParams({ params, args }: RpcCall, index: number, number: RawJson): RawJson {
  // As nearly every client writes it: the scan is saved. The parameter is known to be `latest`, so what stands
  // before the quote is no escape.
  if (index === args.length - 1 && params.endsWith(latestAtEnd))
    return `${params.slice(0, -latestAtEnd.length)}${number}]`
  return setParam(params, index, number)
}

function setParam(params: RawJson, index: number, value: RawJson): RawJson {
  let at = 0
  let from = -1
  let to = -1
  scanArray(jsonText(params), 0, (start, end) => {
    if (at++ === index) {
      from = start
      to = end
    }
    return true
  })
  if (from >= 0) return params.slice(0, from) + value + params.slice(to)
  return `${params.slice(0, params.lastIndexOf(']'))},${value}]`
}
