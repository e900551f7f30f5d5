import { expect, it } from 'vitest'
import { isLoopback } from './loopback.ts'

it.each(['127.0.0.1', '127.8.0.1', '::1', '::ffff:127.0.0.1', 'localhost'])(
  'takes %s for this machine',
  (host) => {
    expect(isLoopback(host)).toBe(true)
  },
)

it.each(['0.0.0.0', '::', '10.0.0.1', '127.example.com', 'localhost.example.com', ''])(
  'does not take %s for this machine',
  (host) => {
    expect(isLoopback(host)).toBe(false)
  },
)
