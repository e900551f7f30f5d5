import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createSealer, SealError } from './seal.ts'

const key = randomBytes(32)
const sealer = createSealer(key)

test('opens what it sealed, text and bytes, and never seals alike twice', () => {
  for (const plain of ['', 'secret', 'ключ 🔑', randomBytes(1_000)]) {
    const sealed = sealer.seal(plain, 'test')
    expect(sealer.open(sealed, 'test')).toEqual(Buffer.from(plain as string))
    expect(sealed).not.toEqual(sealer.seal(plain, 'test'))
  }
  expect(sealer.seal('in clear', 'test').includes('in clear')).toBe(false)
})

test('another context, any flipped bit, any cut and any key but its own are refused', () => {
  const sealed = sealer.seal('secret', 'credential 1')
  expect(() => sealer.open(sealed, 'credential 2')).toThrow(SealError)
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const damaged = Buffer.from(sealed)
    damaged[bit >> 3]! ^= 1 << (bit & 7)
    expect(() => sealer.open(damaged, 'credential 1')).toThrow(SealError)
  }
  for (let length = 0; length < sealed.length; length++)
    expect(() => sealer.open(sealed.subarray(0, length), 'credential 1')).toThrow(SealError)
  expect(() => createSealer(randomBytes(32)).open(sealed, 'credential 1')).toThrow(
    /Start with the master key of this database/,
  )
})

test('a rotation opens old values and seals new ones with the new key', () => {
  const old = sealer.seal('secret', 'c')
  const next = randomBytes(32)
  const rotated = createSealer(next, [key])
  expect(rotated.open(old, 'c').toString()).toBe('secret')
  expect(rotated.isStale(old)).toBe(true)
  const renewed = rotated.seal('secret', 'c')
  expect(rotated.isStale(renewed)).toBe(false)
  expect(createSealer(next).open(renewed, 'c').toString()).toBe('secret')
  expect(() => sealer.open(renewed, 'c')).toThrow(SealError)
})

test('derived keys are stable, and differ by label and by master key', () => {
  expect(sealer.derive('pages')).toHaveLength(32)
  expect(sealer.derive('pages')).toEqual(createSealer(key).derive('pages'))
  expect(sealer.derive('pages')).not.toEqual(sealer.derive('other'))
  expect(sealer.derive('pages')).not.toEqual(createSealer(randomBytes(32)).derive('pages'))
})

test('a master key of another size is refused', () => {
  expect(() => createSealer(randomBytes(16))).toThrow('32 bytes, not 16')
})
