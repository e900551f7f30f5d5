import { describe, expect, it } from 'vitest'
import { systemIds } from '../../lib/ids.ts'
import { createPair, hashKey, sameSecret, sealContext } from './credential-keys.ts'
import { createKeyMac } from './key-mac.ts'

const mac = createKeyMac(Buffer.alloc(32, 7))

describe('a pair', () => {
  it('has distinguishable halves with 144 and 256 random bits', () => {
    const { api_key, api_secret } = createPair(systemIds, mac)
    expect(api_key).toMatch(/^plk_[\w-]{40}$/)
    expect(api_secret).toMatch(/^pls_[\w-]{43}$/)
  })

  it('needs no escape in an address, a header or a shell', () => {
    for (let made = 0; made < 200; made++) {
      const { api_key } = createPair(systemIds, mac)
      expect(encodeURIComponent(api_key)).toBe(api_key)
    }
  })
})

describe('secrets', () => {
  it('are the same only when every character is', () => {
    expect(sameSecret('abc', 'abc')).toBe(true)
    for (const other of ['', 'ab', 'abcd', 'abC', 'abc ', 'äbc'])
      expect(sameSecret('abc', other)).toBe(false)
  })

  it('are looked up by a hash of 32 bytes', () => {
    expect(hashKey('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
  })

  it('are sealed for one half of one credential', () => {
    const contexts = [
      sealContext('api_key', '1'),
      sealContext('api_secret', '1'),
      sealContext('api_key', '2'),
    ]
    expect(new Set(contexts).size).toBe(3)
  })
})
