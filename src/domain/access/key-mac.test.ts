import { expect, it } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { createKeyForms, createKeyMac } from './key-mac.ts'

const mac = createKeyMac(Buffer.alloc(32, 1))
const other = createKeyMac(Buffer.alloc(32, 2))

it('takes the keys that it made and none that another installation made', () => {
  for (let made = 0; made < 100; made++) {
    expect(mac.isForged(mac.create(systemIds))).toBe(false)
    expect(mac.isForged(other.create(systemIds))).toBe(true)
  }
})

it('notices a change of any character of a key', () => {
  const key = mac.create(systemIds)
  for (let at = 4; at < key.length; at++) {
    const letter = key[at] === 'A' ? 'B' : 'A'
    expect(mac.isForged(key.slice(0, at) + letter + key.slice(at + 1))).toBe(true)
  }
})

it('takes 20,000 random keys for made up', () => {
  for (let guess = 0; guess < 20_000; guess++)
    expect(mac.isForged(`plk_${systemIds.bytes(30).toString('base64url')}`)).toBe(true)
})

it('says nothing of keys without a MAC while one may exist, and refuses every other text', () => {
  const forms = createKeyForms({ db: {} as Db, clock: systemClock, log: silentLog, mac })
  expect(forms.isForged('plk_AAAAAAAAAAAAAAAAAAAAAAAA')).toBe(false)
  expect(forms.isForged(mac.create(systemIds))).toBe(false)
  for (const text of ['', 'plk_', 'plk_nobody', 'pls_AAAAAAAAAAAAAAAAAAAAAAAA', 'x'.repeat(28)])
    expect(forms.isForged(text)).toBe(true)
})
