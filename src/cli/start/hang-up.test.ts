import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { onHangUp, terminalCheck } from './hang-up.ts'

test('SIGHUP reloads, and stops when the terminal is closed', () => {
  const source = new EventEmitter()
  const heard: string[] = []
  let isClosed = false
  const off = onHangUp(
    source,
    { closed: () => heard.push('closed'), reload: () => heard.push('reload') },
    () => isClosed,
  )
  source.emit('SIGHUP')
  isClosed = true
  source.emit('SIGHUP')
  expect(heard).toEqual(['reload', 'closed'])
  off()
  expect(source.eventNames()).toEqual([])
})

test('a process without a terminal cannot lose it', () => {
  expect(terminalCheck(false)()).toBe(false)
})
