/** Where each lane goes, and by how many bits it is turned (FIPS 202, 3.2.2 and 3.2.3). */
const places = [
  10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1,
]
const turns = [
  1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44,
]
/** The round constants, in halves: low, high. */
const constants = [
  0x1, 0, 0x8082, 0, 0x808a, 0x80000000, 0x80008000, 0x80000000, 0x808b, 0, 0x80000001, 0,
  0x80008081, 0x80000000, 0x8009, 0x80000000, 0x8a, 0, 0x88, 0, 0x80008009, 0, 0x8000000a, 0,
  0x8000808b, 0, 0x8b, 0x80000000, 0x8089, 0x80000000, 0x8003, 0x80000000, 0x8002, 0x80000000, 0x80,
  0x80000000, 0x800a, 0, 0x8000000a, 0x80000000, 0x80008081, 0x80000000, 0x8080, 0x80000000,
  0x80000001, 0, 0x80008008, 0x80000000,
]
/** Bytes of a block of Keccak-256. */
const rate = 136
const shape = /^0x[0-9a-fA-F]{40}$/

/**
 * Whether a text is an EVM address with a checksum in its case (EIP-55) that is right. One whose checksum
 * is wrong has a typing error. Browsers have no Keccak, and this package has no dependencies.
 */
export function isChecksumAddress(text: string): boolean {
  if (!shape.test(text)) return false
  const digits = text.slice(2).toLowerCase()
  if (digits === text.slice(2)) return false
  const bytes = digest(digits)
  return [...digits].every((digit, at) => {
    const byte = bytes[at >> 1] as number
    const nibble = at % 2 === 0 ? byte >> 4 : byte & 15
    return text[at + 2] === (nibble >= 8 ? digit.toUpperCase() : digit)
  })
}

/**
 * An address as the service takes it: one with a right checksum in lower case, without the spaces around it that come with
 * copying. Every other text is given back as it is.
 */
export function lowerChecksum(text: string): string {
  const trimmed = text.trim()
  return isChecksumAddress(trimmed) ? trimmed.toLowerCase() : text
}

/** Says that the checksum of an EVM address is wrong, which is a typing error; undefined for any other text. */
export function checksumProblem(text: string): string | undefined {
  const digits = text.trim()
  const isMixed = shape.test(digits) && /[a-f]/.test(digits.slice(2)) && /[A-F]/.test(digits)
  return isMixed && !isChecksumAddress(digits)
    ? 'The checksum of this address (EIP-55) is wrong: it has a typing error.'
    : undefined
}

/** The Keccak-256 of a short ASCII text. */
function digest(text: string): Uint8Array {
  const block = new Uint8Array(200)
  for (let at = 0; at < text.length; at++) block[at] = text.charCodeAt(at)
  block[text.length] = 1
  block[rate - 1] = 0x80
  const view = new DataView(block.buffer)
  const low = Uint32Array.from({ length: 25 }, (_, lane) => view.getUint32(lane * 8, true))
  const high = Uint32Array.from({ length: 25 }, (_, lane) => view.getUint32(lane * 8 + 4, true))
  for (let round = 0; round < 24; round++) permute(low, high, round)
  for (let lane = 0; lane < 4; lane++) {
    view.setUint32(lane * 8, low[lane] as number, true)
    view.setUint32(lane * 8 + 4, high[lane] as number, true)
  }
  return block.subarray(0, 32)
}

function permute(low: Uint32Array, high: Uint32Array, round: number): void {
  const l = (at: number) => low[at] as number
  const h = (at: number) => high[at] as number
  const columns = Array.from({ length: 5 }, (_, x) => [
    l(x) ^ l(x + 5) ^ l(x + 10) ^ l(x + 15) ^ l(x + 20),
    h(x) ^ h(x + 5) ^ h(x + 10) ^ h(x + 15) ^ h(x + 20),
  ]) as [number, number][]
  for (let lane = 0; lane < 25; lane++) {
    const [leftLow, leftHigh] = columns[(lane + 4) % 5] as [number, number]
    const [rightLow, rightHigh] = turn(columns[(lane + 1) % 5] as [number, number], 1)
    low[lane] = l(lane) ^ leftLow ^ rightLow
    high[lane] = h(lane) ^ leftHigh ^ rightHigh
  }
  let carried: [number, number] = [l(1), h(1)]
  for (const [at, place] of places.entries()) {
    const next: [number, number] = [l(place), h(place)]
    const [lowTurned, highTurned] = turn(carried, turns[at] as number)
    low[place] = lowTurned
    high[place] = highTurned
    carried = next
  }
  for (const half of [low, high])
    for (let row = 0; row < 25; row += 5) {
      const five = half.slice(row, row + 5)
      for (let x = 0; x < 5; x++)
        half[row + x] =
          (five[x] as number) ^ (~(five[(x + 1) % 5] as number) & (five[(x + 2) % 5] as number))
    }
  low[0] = l(0) ^ (constants[round * 2] as number)
  high[0] = h(0) ^ (constants[round * 2 + 1] as number)
}

/** Turns 64 bits to the left, by 1 to 63 but not by 32. */
function turn([low, high]: [number, number], bits: number): [number, number] {
  if (bits > 32) return turn([high, low], bits - 32)
  return [(low << bits) | (high >>> (32 - bits)), (high << bits) | (low >>> (32 - bits))]
}
