import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { onStopSignal } from './stop-signals.ts'

test('the first signal asks, an echo is ignored, a later one forces', () => {
  const source = new EventEmitter()
  const heard: string[] = []
  let time = 0
  const off = onStopSignal(
    source,
    { first: (signal) => heard.push(signal), again: () => heard.push('again') },
    () => time,
  )
  source.emit('SIGINT')
  time = 100
  source.emit('SIGINT')
  source.emit('SIGTERM')
  expect(heard).toEqual(['SIGINT'])
  time = 1000
  source.emit('SIGTERM')
  expect(heard).toEqual(['SIGINT', 'again'])
  off()
  expect(source.eventNames()).toEqual([])
})
