// Parameters are checked before a node is asked: nodes word their complaints differently, some accept what others refuse,
// and a refused call must not cost a request. Fields that the specification does not name are left to the node.

import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { ParamType, RpcParam } from '../../contract/operations/gateway.ts'
import { hasDuplicateKeys } from '../../lib/json/json.ts'
import { findFilterProblem } from './check-filter.ts'
import { isAddress, isBlock, isData, isHash, isQuantity } from './encodings.ts'
import { type Refusal, refuse } from './rpc-error.ts'

type FindProblem = (value: unknown) => string | undefined

const must =
  (is: (value: unknown) => boolean, sentence: string): FindProblem =>
  (value) =>
    is(value) ? undefined : `must be ${sentence}`

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const problems: Record<ParamType, FindProblem> = {
  address: must(isAddress, '0x and 40 hex digits'),
  block: must(isBlock, 'a quantity, earliest, latest or pending'),
  quantity: must(isQuantity, '0x and hex digits without leading zeros'),
  hash: must(isHash, '0x and 64 hex digits'),
  data: must(isData, '0x and two hex digits per byte'),
  boolean: must((value) => typeof value === 'boolean', 'true or false'),
  call: findCallProblem,
  filter: findFilterProblem,
  // In any form: of an unknown one it is said that it is gone (spec 7).
  filterId: must((value) => typeof value === 'string', 'the id that the gateway gave'),
  subscription: must((value) => typeof value === 'string', 'the name of a subscription'),
  // Nodes also take true and false, for whole transactions or their hashes.
  options: must((value) => isObject(value) || typeof value === 'boolean', 'an object'),
  // What they hold is for nodes to check: clients of several chains send fields of their own.
  overrides: must((value) => isObject(value), 'an object'),
}

// Nodes also take a storage position of 32 bytes, which is how some libraries write it.
const positionProblem: FindProblem = (value) =>
  isHash(value) ? undefined : problems.quantity(value)

// The state of a block may also be asked for by its hash (EIP-1898 and its short form).
const stateBlockProblem: FindProblem = (value) =>
  isBlock(value) || isHash(value) || isBlockObject(value)
    ? undefined
    : 'must be a quantity, earliest, latest or pending'

function isBlockObject(value: unknown): boolean {
  if (!isObject(value)) return false
  const { blockHash, blockNumber, requireCanonical, ...rest } = value as Record<string, unknown>
  if (Object.keys(rest).length > 0) return false
  if (requireCanonical !== undefined && typeof requireCanonical !== 'boolean') return false
  return blockHash === undefined ? isBlock(blockNumber) : isHash(blockHash) && !blockNumber
}

/** Checks the count and the encodings of a call's parameters; undefined when all is well. */
export type CheckParams = (args: readonly unknown[], raw: RawJson) => Refusal | undefined

/** Makes the check for a method's parameters. */
export function createParamsCheck(
  params: readonly RpcParam[],
  { stateOf }: { stateOf: boolean },
): CheckParams {
  const finders = params.map(({ name, type }) => {
    if (name === 'storage position') return positionProblem
    return type === 'block' && stateOf ? stateBlockProblem : problems[type]
  })
  const required = params.filter(({ optional }) => !optional).length
  const hasObject = params.some(({ type }) => type === 'call' || type === 'filter')
  const named = (index: number) => `parameter ${index + 1} (${params[index]?.name})`

  return (args, raw) => {
    if (args.length > params.length)
      return refuse(
        'INVALID_PARAMS',
        `too many parameters: ${args.length} instead of at most ${params.length}`,
      )
    for (let index = 0; index < params.length; index++) {
      const value = args[index]
      if (value === undefined || (value === null && index >= required)) {
        if (index >= required) continue
        return refuse('INVALID_PARAMS', `${named(index)} is missing`, dataOf(params, index))
      }
      const problem = finders[index]!(value)
      if (problem)
        return refuse('INVALID_PARAMS', `${named(index)} ${problem}`, dataOf(params, index))
    }
    // Two readers could disagree about which of the two counts.
    if (hasObject && hasDuplicateKeys(raw, args))
      return refuse('INVALID_PARAMS', `${named(0)} has a field twice`, dataOf(params, 0))
    return undefined
  }
}

const dataOf = (params: readonly RpcParam[], index: number) => ({
  parameter: params[index]?.name,
  index,
})

type Check = { is(value: unknown): boolean; must: string }

const address: Check = { is: isAddress, must: 'must be 0x and 40 hex digits' }
const quantity: Check = {
  is: isQuantity,
  must: 'must be 0x and hex digits without leading zeros',
}
const data: Check = { is: isData, must: 'must be 0x and two hex digits per byte' }

// The six of spec 2.13, and those that came with later transaction types. What else clients send is
// the business of the node.
const checks = new Map<string, Check>([
  ['from', address],
  ['to', address],
  ['gas', quantity],
  ['gasPrice', quantity],
  ['value', quantity],
  ['data', data],
  ['input', data],
  ['nonce', quantity],
  ['type', quantity],
  ['chainId', quantity],
  ['maxFeePerGas', quantity],
  ['maxPriorityFeePerGas', quantity],
])

/** What is wrong with a Call object (spec 2.13), undefined when nothing is. */
export function findCallProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'must be a Call object'
  const call = value as Record<string, unknown>
  for (const name of Object.keys(call)) {
    const check = checks.get(name)
    const field = call[name]
    // A null stands for a field that is not there, as in every node.
    if (check && field !== null && !check.is(field)) return `${name} ${check.must}`
  }
  return undefined
}
