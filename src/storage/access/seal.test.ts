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

test('a ring opens with keys that are added and with those that it had, and seals with the one in use', () => {
  const [other, never] = [randomBytes(32), randomBytes(32)]
  const ring = createSealer(key)
  const old = ring.seal('old', 'c')
  const id = createSealer(other).key_id
  expect(ring.add([other, key])).toEqual([id])
  expect(ring.add([other])).toEqual([])
  expect(ring.key_id).toBe(sealer.key_id)
  expect(ring.open(createSealer(other).seal('new', 'c'), 'c').toString()).toBe('new')
  ring.use(id)
  expect(ring.key_id).toBe(id)
  expect(ring.isStale(old)).toBe(true)
  expect(createSealer(other).open(ring.seal('new', 'c'), 'c').toString()).toBe('new')
  expect(ring.open(old, 'c').toString()).toBe('old')
  expect(() => ring.use(createSealer(never).key_id)).toThrow(SealError)
})

test('a master key of another size is refused', () => {
  expect(() => createSealer(randomBytes(16))).toThrow('32 bytes, not 16')
})
