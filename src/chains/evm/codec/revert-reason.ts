import { hash } from 'node:crypto'
import { readText, readWord } from './abi.ts'

type Kind = 'address' | 'uint256' | 'bytes4' | 'bytes32'
type Known = { name: string; kinds: Kind[] }

// What the common token contracts say (ERC-6093), and how Solidity says it is out of its depth.
const declarations = [
  'ERC20InsufficientBalance(address,uint256,uint256)',
  'ERC20InvalidSender(address)',
  'ERC20InvalidReceiver(address)',
  'ERC20InsufficientAllowance(address,uint256,uint256)',
  'ERC20InvalidApprover(address)',
  'ERC20InvalidSpender(address)',
  'ERC721InvalidOwner(address)',
  'ERC721NonexistentToken(uint256)',
  'ERC721IncorrectOwner(address,uint256,address)',
  'ERC721InvalidSender(address)',
  'ERC721InvalidReceiver(address)',
  'ERC721InsufficientApproval(address,uint256)',
  'ERC721InvalidApprover(address)',
  'ERC721InvalidOperator(address)',
  'OwnableUnauthorizedAccount(address)',
  'AccessControlUnauthorizedAccount(address,bytes32)',
  'EnforcedPause()',
  'ReentrancyGuardReentrantCall()',
  'FailedCall()',
]

const selectorOf = (declaration: string): string =>
  hash('keccak-256', declaration, 'hex').slice(0, 8)

const known = new Map<string, Known>(
  declarations.map((declaration) => {
    const [name = '', kinds = ''] = declaration.slice(0, -1).split('(')
    return [selectorOf(declaration), { name, kinds: kinds.split(',').filter(Boolean) as Kind[] }]
  }),
)

const panics: Readonly<Record<number, string>> = {
  1: 'an assertion failed',
  17: 'an arithmetic overflow',
  18: 'a division by zero',
  33: 'a value outside of its enum',
  34: 'damaged storage',
  49: 'a pop from an empty array',
  50: 'an index outside of its array',
  65: 'too much memory',
  81: 'a call of an empty function',
}

const errorSelector = selectorOf('Error(string)')
const panicSelector = selectorOf('Panic(uint256)')

/** The reason that a contract gave, in words; undefined when it gave none. */
export function decodeRevert(data: string): string | undefined {
  const selector = data.slice(2, 10)
  if (selector.length < 8) return undefined
  const rest = `0x${data.slice(10)}`
  if (selector === errorSelector) return readText(rest) || undefined
  if (selector === panicSelector) {
    const code = Number(readWord(rest) ?? -1n)
    return panics[code] ?? `panic ${code}`
  }
  const found = known.get(selector)
  if (!found) return `the custom error 0x${selector}`
  return `${found.name}(${found.kinds.map((kind, at) => show(kind, readWord(rest, at))).join(', ')})`
}

const widths: Readonly<Record<Kind, number>> = { address: 40, bytes4: 8, bytes32: 64, uint256: 0 }

function show(kind: Kind, word: bigint | undefined): string {
  if (word === undefined) return '?'
  if (kind === 'uint256') return word.toString()
  const digits = word.toString(16).padStart(64, '0')
  return `0x${kind === 'bytes4' ? digits.slice(0, 8) : digits.slice(-widths[kind])}`
}

/** The data of a failed call, wherever in its error a node has put it. */
export function revertDataOf(data: unknown): string | undefined {
  if (data === undefined || data === null) return undefined
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return /0x(?:[0-9a-f]{2}){4,}/i.exec(text)?.[0]?.toLowerCase()
}

/** Why a call would fail, out of a node's error. */
export function reasonOf({ message, data }: { message: string; data?: unknown }): string {
  const raw = revertDataOf(data)
  const reason = raw === undefined ? undefined : decodeRevert(raw)
  if (reason !== undefined) return `The contract reverts: ${reason}.`
  const words = message.replaceAll(/\s+/g, ' ').trim().slice(0, 300)
  return `The node says: ${words || 'the call would fail'}.`.replace(/\.\.$/, '.')
}
