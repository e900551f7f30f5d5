import { isAddress, isData, isQuantity } from './encodings.ts'

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
  for (const [name, field] of Object.entries(value)) {
    const check = checks.get(name)
    // A null stands for a field that is not there, as in every node.
    if (check && field !== null && !check.is(field)) return `${name} ${check.must}`
  }
  return undefined
}
