import { uint } from './bytes.ts'
import type { RuntimeVersion } from './code.ts'
import { unpackCode } from './runtime.ts'

const [i32Const, i64Const] = [0x41, 0x42]
const [i32LessThan, i32GreaterThan] = [0x49, 0x4b]
const i64Store = [0x37, 0x03]

/** A number as an instruction of the code holds it. */
function signedLeb(value: bigint): number[] {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const byte = Number(rest & 0x7fn)
    rest >>= 7n
    if (rest === 0n && byte < 0x40) return [...bytes, byte]
    bytes.push(byte | 0x80)
  }
}

/** The places of the code in which a version stands, with enough around it to be sure. */
function placesOf(
  { authoringVersion, implVersion, transactionVersion }: RuntimeVersion,
  spec: number,
) {
  const plain = signedLeb(BigInt(spec))
  return [
    // The constant with the version.
    Buffer.concat([authoringVersion, spec, implVersion].map((value) => uint(value, 4))),
    // What signatures cover: this version and that of transactions.
    Buffer.from([i64Const, ...signedLeb(BigInt(spec) | (BigInt(transactionVersion) << 32n))]),
    // Whether the last block had an older one, and the writing down of the new one.
    Buffer.from([i32Const, ...plain, i32LessThan]),
    Buffer.from([i64Const, ...plain, ...i64Store]),
    // Whether other code would be newer.
    Buffer.from([i32Const, ...plain, i32GreaterThan]),
  ]
}

/**
 * The same runtime under the next version, so that a chain can exchange its code as on a real upgrade.
 * The places are those of the one runtime that the dev node runs; another one is refused.
 */
export function nextVersionOf(code: Uint8Array, version: RuntimeVersion): Uint8Array {
  const wasm = Buffer.from(unpackCode(code))
  const after = placesOf(version, version.specVersion + 1)
  for (const [index, place] of placesOf(version, version.specVersion).entries()) {
    const at = wasm.indexOf(place)
    if (at === -1) throw new Error('the runtime has its version elsewhere')
    after[index]!.copy(wasm, at)
  }
  return Uint8Array.from(wasm)
}
