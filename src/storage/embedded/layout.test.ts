import { expect, test } from 'vitest'
import { connectionOf, layoutOf } from './layout.ts'

test('the socket is beside the data when its path is short enough', () => {
  const layout = layoutOf('/srv/portolan')
  expect(layout.socket).toBe('/srv/portolan/postgres/run')
  expect(connectionOf(layout)).toEqual({
    host: '/srv/portolan/postgres/run',
    port: 5432,
    user: 'portolan',
    database: 'portolan',
  })
})

test('a long path has its socket elsewhere, always at the same short place', () => {
  const long = `/srv/${'ü'.repeat(40)}`
  const { socket } = layoutOf(long)
  expect(socket).toMatch(/\/portolan-[0-9a-f]{16}$/)
  expect(layoutOf(long).socket).toBe(socket)
  expect(layoutOf(`${long}x`).socket).not.toBe(socket)
  expect(Buffer.byteLength(`${socket}/.s.PGSQL.5432`)).toBeLessThan(104)
})
