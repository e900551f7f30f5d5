import { expect, it, vi } from 'vitest'
import { silentLog } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { createProcessReports } from './process-reports.ts'

it('reports the WebSockets of an organization at most once a second, however often they are listed', async () => {
  let time = 0
  const webSockets = vi.fn(() => [])
  // A process without WebSockets writes nothing.
  const db = undefined as unknown as Db
  const reports = createProcessReports({
    ...{ db, log: silentLog, now: () => time },
    overview: { holder: 'this', webSockets, nodes: () => [], gateways: () => [] },
  })
  const list = async (of: string | null, times: number) => {
    for (let count = 0; count < times; count++) {
      reports.changed({ kind: 'websockets', from: 'another', of })
      await Promise.resolve()
    }
  }
  await list('one', 100)
  await list('other', 100)
  await vi.waitFor(() => expect(webSockets.mock.calls).toEqual([['one'], ['other']]))
  time = 999
  await list('one', 100)
  time = 1_000
  await list('one', 100)
  await vi.waitFor(() => expect(webSockets).toHaveBeenCalledTimes(3))
  await reports.stop()
  expect(webSockets).toHaveBeenCalledTimes(3)
})
