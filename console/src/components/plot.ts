import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { formatMeasure } from '../lib/format.ts'
import type { Series } from './chart.tsx'

/** A drawn chart. */
export type Plot = {
  setData(times: readonly number[], series: readonly Series[]): void
  stop(): void
}

/** The hour, or the day where days are shown; in UTC like every other time of the console. */
const timeLabel = (times: readonly number[]) => {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * 86_400
  return (time: number) => {
    const text = new Date(time * 1000).toISOString()
    return isLong ? text.slice(5, 10) : text.slice(11, 16)
  }
}

/** From the first to the last value, ten minutes at least. uPlot itself shows a day around a single value. */
const spanOf = (times: ArrayLike<number>): [number, number] => {
  const last = times[times.length - 1] ?? Date.now() / 1000
  return [Math.min(times[0] ?? last, last - 600), last]
}

/** Draws lines over time into an element, in the colours of the page, and follows its size and theme. */
export function createPlot(
  box: HTMLElement,
  options: { unit: string; titles: readonly string[] },
): Plot {
  const { unit, titles } = options
  const height = 160
  const colour = (name: string) => getComputedStyle(box).getPropertyValue(name).trim()
  let data: uPlot.AlignedData = [[], ...titles.map(() => [])]
  let plot = draw()

  function draw(): uPlot {
    const axis = {
      stroke: colour('--ink-soft'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    }
    return new uPlot(
      {
        width: Math.max(200, box.clientWidth),
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        scales: {
          x: { range: () => spanOf(data[0]) },
          y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] },
        },
        axes: [
          {
            ...axis,
            size: 28,
            gap: 6,
            space: 64,
            // Labels have minutes: a finer step would repeat them.
            incrs: [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map(
              (minutes) => minutes * 60,
            ),
            values: (_, times) => times.map(timeLabel(times)),
          },
          {
            ...axis,
            size: 56,
            values: (_, values) => values.map((value) => formatMeasure(value, unit)),
          },
        ],
        series: [
          {},
          ...titles.map((label, index) => ({
            label,
            stroke: colour(`--series-${index + 1}`),
            width: 1.5,
            points: { show: () => data[0].length < 30, size: 5 },
            ...(index === 0 && { fill: `${colour('--series-1')}1f` }),
          })),
        ],
      },
      data,
      box,
    )
  }

  const sizes = new ResizeObserver(() => {
    if (box.clientWidth > 0) plot.setSize({ width: Math.max(200, box.clientWidth), height })
  })
  sizes.observe(box)
  const themes = new MutationObserver(() => {
    plot.destroy()
    plot = draw()
  })
  themes.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return {
    setData: (times, series) => {
      data = [[...times], ...series.map(({ values }) => [...values])]
      plot.setData(data)
    },
    stop: () => {
      sizes.disconnect()
      themes.disconnect()
      plot.destroy()
    },
  }
}
