import { expect, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { logEvent } from './watch.ts'

test('an event has the same name in every log line, and says which chain it is about', () => {
  const lines: unknown[] = []
  const log = {
    ...silentLog,
    info: (fields: object, message: string) => lines.push(['info', fields, message]),
    error: (fields: object, message: string) => lines.push(['error', fields, message]),
  }
  const event = { kind: 'gap', chain: 't', network: 'mainnet', subject: '12' } as const
  logEvent(log, 'opened', { ...event, detail: 'blocks 12 to 20' })
  logEvent(log, 'resolved', event)
  expect(lines).toEqual([
    [
      'error',
      {
        event: 'gap_opened',
        chain: 't',
        network: 'mainnet',
        subject: '12',
        detail: 'blocks 12 to 20',
      },
      'blocks are missing',
    ],
    [
      'info',
      { event: 'gap_closed', chain: 't', network: 'mainnet', subject: '12' },
      'missing blocks were filled in',
    ],
  ])
})
