import { useEffect, useRef, useState } from 'preact/hooks'
import { formatMeasure, formatTime } from '../lib/format.ts'
import type { Plot } from './plot.ts'
import { Scroll } from './scroll.tsx'
import '../styles/charts.css'

/** One line of a chart. Where values are amounts, `texts` has them exactly: a float is good enough for a line only. */
export type Series = {
  title: string
  values: readonly (number | null)[]
  texts?: readonly string[]
}

const textOf = (series: Series, index: number, unit: string): string =>
  series.texts?.[index] ?? formatMeasure(series.values[index], unit)

/** A chart over time. The same values are in a table for screen readers, and for those who want numbers. */
export function Chart(props: {
  title: string
  unit?: string
  /** Unix time in seconds. */
  times: readonly number[]
  series: readonly Series[]
}) {
  const { title, unit = '', times, series } = props
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | undefined>(undefined)
  const [asTable, setAsTable] = useState(false)
  // The values may change while the library is loaded.
  const newest = useRef({ times, series })
  newest.current = { times, series }

  useEffect(() => {
    if (asTable) return
    let ended = false
    // The library of charts is loaded with the first one.
    import('./plot.ts').then(
      ({ createPlot }) => {
        if (ended || !box.current) return
        plot.current = createPlot(box.current, { unit, titles: series.map((one) => one.title) })
        const { times: newestTimes, series: newestSeries } = newest.current
        plot.current.setData(newestTimes, newestSeries)
      },
      // The service was unreachable, and browsers do not ask for a module again: the table has the same values.
      () => setAsTable(true),
    )
    return () => {
      ended = true
      plot.current?.stop()
      plot.current = undefined
    }
  }, [asTable, series.length])
  useEffect(() => plot.current?.setData(times, series), [times, series])

  const last = times.length - 1
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-keys">
          {series.map((one, index) => (
            <span key={one.title} data-series={index + 1}>
              {one.title} <strong>{textOf(one, last, unit)}</strong>
            </span>
          ))}
        </span>
        <button
          type="button"
          class="button small quiet"
          aria-pressed={asTable}
          onClick={() => setAsTable(!asTable)}
        >
          Table<span class="hidden-text"> of {title}</span>
        </button>
      </figcaption>
      {asTable ? (
        <Scroll class="chart-table" label={`${title} as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {series.map((one) => (
                  <th key={one.title} scope="col" data-align="end">
                    {one.title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((time, index) => (
                  <tr key={index}>
                    <th scope="row">{formatTime(time * 1000)}</th>
                    {series.map((one) => (
                      <td key={one.title} data-align="end">
                        {textOf(one, index, unit)}
                      </td>
                    ))}
                  </tr>
                ))
                .reverse()}
            </tbody>
          </table>
        </Scroll>
      ) : (
        <div class="chart-box" ref={box} role="img" aria-label={describe(props)}>
          {times.length === 0 && <p class="chart-empty">The first values come within a minute.</p>}
        </div>
      )}
    </figure>
  )
}

function describe(props: { title: string; unit?: string; series: readonly Series[] }): string {
  const parts = props.series.map(({ title, values, texts }) => {
    const known = values.filter((value) => value !== null)
    if (known.length === 0) return `${title}: no values`
    const low = formatMeasure(Math.min(...known), props.unit)
    const high = formatMeasure(Math.max(...known), props.unit)
    const now = texts?.at(-1) ?? formatMeasure(known.at(-1), props.unit)
    return `${title}: now ${now}, from ${low} to ${high}`
  })
  return `${props.title}. ${parts.join('. ')}.`
}
