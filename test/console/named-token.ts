/**
 * The code of an ERC-20 contract whose name and symbol are given texts. Every holder has one unit. It is written by
 * hand because a compiler is not part of the tests.
 */
export function namedToken(name: string, symbol: string): `0x${string}` {
  const texts = [abiText(name), abiText(symbol)]
  const selectors = ['06fdde03', '95d89b41']
  const push2 = (value: number) => `61${value.toString(16).padStart(4, '0')}`
  // Selector of the call: calldata[0] >> 224.
  const head = '5f3560e01c'
  const branch = (selector: string, target: number) => `8063${selector}14${push2(target)}57`
  const branchBytes = 11
  const one = '60015f5260205ff3'
  const zero = '5b60205ff3'
  const copyBytes = 14
  const headBytes = head.length / 2
  const zeroAt = headBytes + 3 * branchBytes + one.length / 2
  const firstCopyAt = zeroAt + zero.length / 2
  const dataAt = firstCopyAt + 2 * copyBytes
  const [nameBytes, symbolBytes] = texts.map((text) => text.length / 2) as [number, number]
  // JUMPDEST, CODECOPY of the encoded text to memory 0, RETURN.
  const copy = (length: number, offset: number) =>
    `5b${push2(length)}${push2(offset)}5f39${push2(length)}5ff3`
  return `0x${[
    head,
    branch(selectors[0]!, firstCopyAt),
    branch(selectors[1]!, firstCopyAt + copyBytes),
    // supportsInterface says no.
    branch('01ffc9a7', zeroAt),
    one,
    zero,
    copy(nameBytes, dataAt),
    copy(symbolBytes, dataAt + nameBytes),
    ...texts,
  ].join('')}`
}

const word = (value: number) => value.toString(16).padStart(64, '0')

/** A string as a function returns it. */
function abiText(text: string): string {
  const bytes = Buffer.from(text)
  const padded = Math.ceil(bytes.length / 32) * 64
  return word(32) + word(bytes.length) + bytes.toString('hex').padEnd(padded, '0')
}
