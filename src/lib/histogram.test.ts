import { expect, it } from 'vitest'
import { createHistogram } from './histogram.ts'

it('counts values by the first bound that is not below them', () => {
  const histogram = createHistogram([1, 2])
  for (const value of [0, 1, 1.5, 2, 3]) histogram.add(value)
  expect(histogram.read()).toEqual({
    bounds: [1, 2],
    buckets: [2, 2, 1],
    sum: 7.5,
    exemplars: [undefined, undefined, undefined],
  })
})

it('keeps the last traced value of each bucket', () => {
  const histogram = createHistogram([1])
  histogram.add(0.5, 'a')
  histogram.add(0.6, 'b')
  histogram.add(0.7)
  expect(histogram.read().exemplars).toEqual([
    { trace_id: 'b', value: 0.6, time: expect.any(Number) },
    undefined,
  ])
})
