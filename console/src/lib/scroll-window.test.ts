import { expect, it } from 'vitest'
import { maxPixels, shiftRows, visibleRange } from './scroll-window.ts'

it('a long table renders a window of its rows', () => {
  const range = visibleRange({ top: -40_000, height: 40, viewport: 800, count: 1_000_000 })
  expect(range.start).toBe(980)
  expect(range.end - range.start).toBeLessThan(100)
  expect(visibleRange({ top: 500, height: 40, viewport: 800, count: 3 })).toEqual({
    start: 0,
    end: 3,
  })
})

const viewport = 800
const total = 40_000_000

it('rows that fit are at their place', () => {
  const options = { scrolled: 5_000, before: 0, shift: 0, total: maxPixels, viewport }
  expect(shiftRows(options)).toEqual({ shift: 0, scroll: 0 })
})

it('a small scroll moves rows as fast as the page', () => {
  const options = { scrolled: 4_000_100, before: 4_000_000, shift: 16_000_000, total, viewport }
  expect(shiftRows(options)).toEqual({ shift: 16_000_000, scroll: 0 })
})

it('the ends of the scroll bar are the ends of the list', () => {
  const end = shiftRows({ scrolled: maxPixels - viewport, before: 0, shift: 0, total, viewport })
  expect(maxPixels - viewport + end.shift).toBeCloseTo(total - viewport)
  const start = shiftRows({ scrolled: 0, before: maxPixels, shift: end.shift, total, viewport })
  expect(start).toEqual({ shift: 0, scroll: 0 })
})

it('rows stay on the screen when the end of the box gets room', () => {
  // The list grew while its end was on the screen.
  const scrolled = maxPixels - viewport
  const shift = total - maxPixels
  const { shift: moved, scroll } = shiftRows({
    ...{ scrolled, before: scrolled - 50, shift, total: total + 400_000, viewport },
  })
  expect(scroll).toBeLessThan(0)
  expect(scrolled + scroll + moved).toBeCloseTo(scrolled + shift)
})
