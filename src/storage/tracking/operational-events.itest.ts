import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { deleteOldEvents, listEvents, openEvent, resolveEvent } from './operational-events.ts'

const { db } = await freshDatabase()
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))
const failing = { kind: 'tracker_failing', chain: 'c', network: 'mainnet' } as const

test('an event is open once however often it is recorded, and its detail is the newest', async () => {
  expect(await openEvent(db, { ...failing, detail: 'first', now: at(1) })).toBe(true)
  expect(await openEvent(db, { ...failing, detail: 'second', now: at(2) })).toBe(false)
  expect(await openEvent(db, { ...failing, detail: 'second', now: at(3) })).toBe(false)
  const { open, resolved } = await listEvents(db, 10)
  expect(open).toEqual([
    {
      ...failing,
      subject: '',
      detail: 'second',
      create_time: at(1),
      update_time: at(2),
      resolve_time: null,
    },
  ])
  expect(resolved).toEqual([])
})

test('a resolved event stays in the list, and the next one is another', async () => {
  expect(await resolveEvent(db, { ...failing, now: at(4) })).toMatchObject({ create_time: at(1) })
  expect(await resolveEvent(db, { ...failing, now: at(5) })).toBeUndefined()
  expect(await openEvent(db, { ...failing, detail: 'again', now: at(6) })).toBe(true)
  const { open, resolved } = await listEvents(db, 10)
  expect(open).toMatchObject([{ detail: 'again' }])
  expect(resolved).toMatchObject([{ detail: 'second', resolve_time: at(4) }])
})

test('the subject distinguishes several of one kind', async () => {
  const gap = { kind: 'gap', chain: 't', network: 'mainnet', detail: 'pruned' } as const
  expect(await openEvent(db, { ...gap, subject: '7', now: at(1) })).toBe(true)
  expect(await openEvent(db, { ...gap, subject: '90', now: at(1) })).toBe(true)
  expect(await resolveEvent(db, { ...gap, subject: '7', now: at(2) })).toMatchObject({
    subject: '7',
  })
  const { open } = await listEvents(db, 10)
  expect(open.filter(({ kind }) => kind === 'gap')).toMatchObject([{ subject: '90' }])
})

test('events of many processes at once are opened once', async () => {
  const event = { ...failing, chain: 'p', detail: 'same', now: at(1) }
  for (let round = 0; round < 20; round++) {
    const name = { ...event, network: `n${round}` }
    const opened = await Promise.all(Array.from({ length: 8 }, () => openEvent(db, name)))
    expect(opened.filter(Boolean)).toHaveLength(1)
  }
})

test('an event that is over within its millisecond can be opened again', async () => {
  const event = { ...failing, chain: 'q', detail: 'brief', now: at(1) }
  expect(await openEvent(db, event)).toBe(true)
  expect(await resolveEvent(db, event)).toMatchObject({ create_time: at(1) })
  expect(await openEvent(db, event)).toBe(true)
})

test('only the newest resolved events are kept, and every open one', async () => {
  for (let second = 0; second < 10; second++) {
    const event = { kind: 'tracker_stalled', chain: 's', network: `n${second}` } as const
    await openEvent(db, { ...event, detail: '', now: at(30 + second) })
    if (second > 0) await resolveEvent(db, { ...event, now: at(50) })
  }
  await deleteOldEvents(db, 3)
  const { open, resolved } = await listEvents(db, 100)
  expect(resolved.map(({ network }) => network)).toEqual(['n9', 'n8', 'n7'])
  expect(open.some(({ network }) => network === 'n0')).toBe(true)
})
