import { expect, test } from 'vitest'
import { layoutOf } from './layout.ts'
import { renderSettings } from './settings.ts'

const layout = layoutOf("/srv/it's")

test('settings override defaults, and fixed settings that keep the server private override both', () => {
  const lines = renderSettings(layout, { work_mem: '1MB', fsync: false, port: 1 }).split('\n')
  expect(lines).toContain("work_mem = '1MB'")
  expect(lines).toContain('fsync = off')
  expect(lines).toContain('port = 5432')
  expect(lines).toContain("listen_addresses = ''")
  expect(lines.filter((line) => line.startsWith('port'))).toHaveLength(1)
})

test('quotes are doubled', () => {
  expect(renderSettings(layout)).toContain("unix_socket_directories = '/srv/it''s/postgres/run'")
})
