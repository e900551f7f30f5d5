const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const values = new Map([...alphabet].map((letter, value) => [letter, value]))

/** The bytes of a base58 text; undefined when a character is not of its alphabet. */
export const decodeBase58 = (text: string): Buffer | undefined => {
  const bytes: number[] = []
  for (const letter of text) {
    let carry = values.get(letter)
    if (carry === undefined) return undefined
    for (let at = 0; at < bytes.length; at++) {
      carry += bytes[at]! * 58
      bytes[at] = carry & 0xff
      carry >>= 8
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 0xff)
  }
  const zeros = text.length - text.replace(/^1+/, '').length
  return Buffer.from([...Array<number>(zeros).fill(0), ...bytes.reverse()])
}

/** The base58 text of bytes. */
export const encodeBase58 = (bytes: Uint8Array): string => {
  const digits: number[] = []
  for (const byte of bytes) {
    let carry = byte
    for (let at = 0; at < digits.length; at++) {
      carry += digits[at]! << 8
      digits[at] = carry % 58
      carry = (carry / 58) | 0
    }
    for (; carry > 0; carry = (carry / 58) | 0) digits.push(carry % 58)
  }
  let zeros = 0
  while (bytes[zeros] === 0) zeros++
  return (
    '1'.repeat(zeros) +
    digits
      .reverse()
      .map((digit) => alphabet[digit])
      .join('')
  )
}
