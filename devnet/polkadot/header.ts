import { readCompact, toHex } from './bytes.ts'

/** A header as nodes print it. */
export type HeaderJson = {
  parentHash: string
  number: string
  stateRoot: string
  extrinsicsRoot: string
  digest: { logs: string[] }
}

/** Prints a header. */
export function headerJson(header: Uint8Array): HeaderJson {
  const { value: number, end } = readCompact(header, 32)
  return {
    parentHash: toHex(header.subarray(0, 32)),
    number: `0x${number.toString(16)}`,
    stateRoot: toHex(header.subarray(end, end + 32)),
    extrinsicsRoot: toHex(header.subarray(end + 32, end + 64)),
    digest: { logs: logsOf(header, end + 64) },
  }
}

const environmentUpdated = 8
const other = 0

function logsOf(header: Uint8Array, from: number): string[] {
  const list = readCompact(header, from)
  const logs: string[] = []
  let at = list.end
  for (let left = list.value; left > 0; left--) {
    const begin = at
    const kind = header[at]
    at++
    if (kind !== environmentUpdated) {
      // Four letters say whose log it is, except in one without an owner.
      if (kind !== other) at += 4
      const { value: length, end } = readCompact(header, at)
      at = end + length
    }
    logs.push(toHex(header.subarray(begin, at)))
  }
  return logs
}
