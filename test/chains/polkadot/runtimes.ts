import { readFileSync } from 'node:fs'
import { keyBytes, storageKey, toHex, uint } from '../../../devnet/polkadot/bytes.ts'
import type { ChainSpec } from '../../../devnet/polkadot/spec.ts'
import { modernCode } from './modern-code.ts'

/** A real runtime that the dev node executes. */
export type TestRuntime = {
  name: string
  /** The dev node's own where it is left out. */
  spec?: ChainSpec
  specVersion: number
  /** Says the fee by an event, has accounts of the new layout, and takes addresses for accounts. */
  isModern: boolean
}

/** A chain of the newest runtime that npm has whole: its code, and what it needs for a first block. */
function modernSpec(): ChainSpec {
  const para_id = 2_000
  const oneAuthority = Buffer.concat([Buffer.of(1 << 2), Buffer.alloc(32, 7)])
  const state: [string, Uint8Array][] = [
    [storageKey('ParachainInfo', 'ParachainId'), uint(para_id, 4)],
    [storageKey('Aura', 'Authorities'), oneAuthority],
  ]
  const rest = state.map(([key, value]) => [toHex(keyBytes(key)), toHex(value)])
  const top = { '0x3a636f6465': modernCode(), ...Object.fromEntries(rest) }
  return { name: 'Acala', para_id, properties: {}, genesis: { raw: { top } } }
}

/** One that the caller has: no package holds a runtime of 2024 or later. */
function givenRuntime(env = process.env): TestRuntime[] {
  const { POLKADOT_SPEC: file, POLKADOT_SPEC_VERSION: version } = env
  if (!file) return []
  const spec = JSON.parse(readFileSync(file, 'utf8')) as ChainSpec
  return [{ name: `${spec.name}, given`, specVersion: Number(version), isModern: true, spec }]
}

/**
 * An old one and a newer one. A raw chain specification in the file `POLKADOT_SPEC`, whose runtime has the version
 * `POLKADOT_SPEC_VERSION`, is a third one.
 */
export const testRuntimes = (): TestRuntime[] => [
  { name: 'Asset Hub, runtime 900 of 2022', specVersion: 900, isModern: false },
  { name: 'Acala, runtime 2220 of 2023', specVersion: 2_220, isModern: true, spec: modernSpec() },
  ...givenRuntime(),
]
