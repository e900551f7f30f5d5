import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sign } from './secret.ts'

it('signs id, time and body with each secret by HMAC', () => {
  const bytes = (maxLength: number) =>
    fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))
  fc.assert(
    fc.property(
      fc.array(bytes(100), { maxLength: 3 }),
      fc.string({ unit: 'grapheme' }),
      fc.nat(),
      bytes(300),
      (secrets, id, timestamp, body) => {
        const expected = secrets.map((secret) => {
          const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body)
          return `v1,${mac.digest('base64')}`
        })
        expect(sign(secrets, { id, timestamp, body })).toBe(expected.join(' '))
      },
    ),
  )
})
