import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createMac } from './mac.ts'

test('is HMAC-SHA256, whatever the key and however the message is cut', () => {
  const bytes = fc.uint8Array({ maxLength: 200 })
  const key = fc.string({ unit: 'binary', maxLength: 200 })
  fc.assert(
    fc.property(key, fc.array(bytes, { maxLength: 3 }), (key, parts) => {
      const expected = createHmac('sha256', key).update(Buffer.concat(parts)).digest()
      expect(createMac(key)(...parts)).toEqual(expected)
    }),
  )
})
