import type { Parsed } from '../chain.ts'
import { parsed, refused } from '../hex.ts'

const head = /^(?:0x)?([0-9a-fA-F]{1,64})::([a-zA-Z_][a-zA-Z0-9_]*)::([a-zA-Z_][a-zA-Z0-9_]*)/
const primitive = /^(?:bool|u8|u16|u32|u64|u128|u256|address|signer)(?=[,>]|$)/

/** The native coin, which has many spellings. */
const native = `0x${'2'.padStart(64, '0')}::sui::SUI`

type Read = { text: string; rest: string }

/** Reads one type off the front of a text and gives it in its canonical spelling. */
const readType = (text: string, depth = 0): Read | undefined => {
  // Move allows 16 levels.
  if (depth > 16) return undefined
  const simple = primitive.exec(text)?.[0]
  if (simple) return { text: simple, rest: text.slice(simple.length) }
  if (text.startsWith('vector<')) return readArguments('vector', text.slice(6), depth)
  const match = head.exec(text)
  if (!match) return undefined
  const [whole, account = '', module, name] = match
  const struct = `0x${account.toLowerCase().padStart(64, '0')}::${module}::${name}`
  const rest = text.slice(whole.length)
  return rest.startsWith('<') ? readArguments(struct, rest, depth) : { text: struct, rest }
}

const readArguments = (of: string, text: string, depth: number): Read | undefined => {
  const types: string[] = []
  let rest = text
  do {
    const type = readType(rest.slice(1).trimStart(), depth + 1)
    if (!type) return undefined
    types.push(type.text)
    rest = type.rest
  } while (rest.startsWith(','))
  if (!rest.startsWith('>')) return undefined
  return { text: `${of}<${types.join(', ')}>`, rest: rest.slice(1) }
}

/** Reads a coin type in any spelling as its canonical text in UTF-8; the native coin is empty. */
export const parseCoinType = (text: string): Parsed => {
  const type = readType(text)
  // A primitive alone is a type, but not one of a coin.
  if (type?.rest !== '' || !type.text.includes('::'))
    return refused('Must be a coin type such as 0x2::sui::SUI.')
  return parsed(Buffer.from(type.text === native ? '' : type.text))
}

/** The text of a stored coin type. */
export const formatCoinType = (type: Uint8Array): string => Buffer.from(type).toString('utf8')
