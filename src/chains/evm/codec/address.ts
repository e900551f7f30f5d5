import type { Parsed } from '../../chain.ts'
import { parsed, parseEvmPattern, refused } from '../../hex.ts'

/** Reads an address: exactly the pattern of spec 2, so that one account has one text. */
export const parseAddress = (text: string): Parsed => {
  const bytes = parseEvmPattern(text)
  if (bytes) return parsed(bytes)
  const lower = text.toLowerCase()
  return parseEvmPattern(lower)
    ? refused(`Must be in lower case: ${lower}`)
    : refused('Must be 0x and 40 lower-case hex digits.')
}
