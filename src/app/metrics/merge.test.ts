import { expect, it } from 'vitest'
import { addEnded, mergeMetrics } from './merge.ts'
import type { MetricFamily } from './render.ts'

const counter = (value: number, status = '200'): MetricFamily => ({
  ...{ name: 'portolan_http_requests_total', help: 'Requests.', type: 'counter' },
  values: [{ value, labels: { status } }],
})
const gauge = (name: string, value: number): MetricFamily => ({
  ...{ name, help: 'Some gauge.', type: 'gauge', values: [{ value, labels: {} }] },
})
const histogram = (count: number): MetricFamily => ({
  ...{ name: 'h', help: 'Times.', type: 'histogram' },
  values: [
    { value: count, labels: { le: '+Inf' }, metricName: 'h_bucket' },
    { value: count * 2, labels: {}, metricName: 'h_sum' },
    { value: count, labels: {}, metricName: 'h_count' },
  ],
})
const lines = (text: string) => text.split('\n').filter((line) => line && !line.startsWith('#'))

it('adds up counters and histograms, and names the process of gauges that cannot be added', () => {
  const { text, contentType } = mergeMetrics(
    [
      {
        process: 'worker-1',
        families: [
          counter(3),
          histogram(1),
          gauge('portolan_http_connections', 2),
          gauge('rss', 7),
        ],
      },
      {
        process: 'worker-2',
        families: [
          ...[counter(4), counter(1, '429'), histogram(2), gauge('portolan_http_connections', 5)],
          ...[gauge('rss', 9), gauge('portolan_info', 1)],
        ],
      },
      { process: 'background', families: [gauge('portolan_info', 1), gauge('only_here', 1)] },
    ],
    undefined,
  )
  expect(contentType).toContain('text/plain')
  expect(lines(text)).toEqual([
    'portolan_http_requests_total{status="200"} 7',
    'portolan_http_requests_total{status="429"} 1',
    'h_bucket{le="+Inf"} 3',
    'h_sum 6',
    'h_count 3',
    'portolan_http_connections 7',
    'rss{process="worker-1"} 7',
    'rss{process="worker-2"} 9',
    'portolan_info 1',
    'only_here 1',
  ])
})

it('keeps the counters of processes that ended, and not their gauges', () => {
  let ended: MetricFamily[] = []
  ended = addEnded(ended, [counter(3), gauge('rss', 7)])
  ended = addEnded(ended, [counter(4), histogram(1)])
  const { text } = mergeMetrics(
    [
      { process: 'worker-3', families: [counter(1)] },
      { process: 'ended', families: ended },
    ],
    undefined,
  )
  expect(lines(text)).toEqual([
    'portolan_http_requests_total{status="200"} 8',
    'h_bucket{le="+Inf"} 1',
    'h_sum 2',
    'h_count 1',
  ])
})
