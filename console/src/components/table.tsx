import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { maxPixels, shiftRows, visibleRange } from '../lib/scroll-window.ts'
import type { PagedList } from '../lib/use-resource.ts'
import { Skeleton } from './layout.tsx'
import { Problem } from './problem.tsx'
import { Scroll } from './scroll.tsx'

/** One column of a table. */
export type Column<row> = {
  title: string
  cell: (row: row) => ComponentChildren
  align?: 'end'
  /** Left out on narrow screens, or also on those of middle width. */
  hide?: 'narrow' | 'medium'
}

type TableProps<row> = {
  label: string
  columns: readonly Column<row>[]
  keyOf: (row: row) => string
  /** Rows that came while the page was open. */
  isNew?: (row: row) => boolean
}

/** Rows by their place, of which some may not be loaded. */
type Rows<row> = {
  count: number
  at(index: number): row | undefined
  /** Called with the rows that are rendered. */
  show?(start: number, end: number): void
}

/** Shorter tables are rendered whole. */
const wholeTable = 120

/** A table of any length: only the rows that can be seen are in the document. */
export const Table = <row,>({ rows, ...table }: TableProps<row> & { rows: readonly row[] }) => (
  <LongTable {...table} rows={{ count: rows.length, at: (index) => rows[index] }} />
)

function LongTable<row>(props: TableProps<row> & { rows: Rows<row> }) {
  const { label, columns, rows, keyOf, isNew } = props
  const { count } = rows
  const { body, start, end, above, below } = useWindow(count)
  useEffect(() => rows.show?.(start, end))
  const indices = Array.from({ length: Math.max(0, end - start) }, (_, at) => start + at)
  return (
    <Scroll class="table-box" label={label}>
      <table aria-rowcount={count > wholeTable ? count + 1 : undefined}>
        <thead>
          <tr>
            {columns.map(({ title, align, hide }) =>
              // A column of buttons has no title, and an empty heading would be read out.
              title ? (
                <th key={title} scope="col" data-align={align} data-hide={hide}>
                  {title}
                </th>
              ) : (
                <td key={title} data-hide={hide} />
              ),
            )}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer height={above} columns={columns.length} />
          {indices.map((index) => {
            const row = rows.at(index)
            const rowIndex = count > wholeTable ? index + 2 : undefined
            if (row === undefined)
              return (
                <tr key={`#${index}`} aria-rowindex={rowIndex} aria-busy="true">
                  <td colSpan={columns.length}>
                    <span class="row-skeleton" />
                  </td>
                </tr>
              )
            return (
              <tr
                key={keyOf(row)}
                data-row
                data-new={isNew?.(row) || undefined}
                aria-rowindex={rowIndex}
              >
                {columns.map(({ title, cell, align, hide }) => (
                  <td key={title} data-align={align} data-hide={hide}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            )
          })}
          <Spacer height={below} columns={columns.length} />
        </tbody>
      </table>
    </Scroll>
  )
}

/** Which rows of a table are near the screen, and how much room the others take. */
function useWindow(count: number) {
  const body = useRef<HTMLTableSectionElement>(null)
  const [range, setRange] = useState({ start: 0, end: wholeTable, shift: 0 })
  const [height, setHeight] = useState(40)
  const place = useRef({ scrolled: 0, shift: 0 })
  const isLong = count > wholeTable

  useLayoutEffect(() => {
    const measured = body.current?.querySelector<HTMLElement>('tr[data-row]')?.offsetHeight
    if (measured && measured !== height) setHeight(measured)
  })
  useEffect(() => {
    if (!isLong) return
    let frame = 0
    const update = () => {
      frame = 0
      const viewport = window.innerHeight
      const scrolled = -(body.current?.getBoundingClientRect().top ?? 0)
      const { shift, scroll } = shiftRows({
        ...{ scrolled, before: place.current.scrolled, shift: place.current.shift },
        ...{ total: count * height, viewport },
      })
      place.current = { scrolled: scrolled + scroll, shift }
      if (scroll !== 0) window.scrollBy({ top: scroll, behavior: 'instant' })
      const top = -(scrolled + scroll + shift)
      const next = { ...visibleRange({ top, height, viewport, count }), shift }
      setRange((last) =>
        last.start === next.start && last.end === next.end && last.shift === shift ? last : next,
      )
    }
    const schedule = () => {
      frame ||= requestAnimationFrame(update)
    }
    update()
    window.addEventListener('scroll', schedule, { passive: true })
    window.addEventListener('resize', schedule)
    return () => {
      cancelAnimationFrame(frame)
      window.removeEventListener('scroll', schedule)
      window.removeEventListener('resize', schedule)
    }
  }, [isLong, count, height])

  if (!isLong) return { body, start: 0, end: count, above: 0, below: 0 }
  const start = Math.min(range.start, count)
  const end = Math.min(range.end, count)
  const above = Math.max(0, start * height - range.shift)
  const shownHeight = Math.min(count * height, maxPixels)
  return {
    ...{ body, start, end, above },
    below: Math.max(0, shownHeight - above - (end - start) * height),
  }
}

const Spacer = (props: { height: number; columns: number }) =>
  props.height > 0 ? (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row is not focusable, and this one is no row of the table
    <tr aria-hidden="true" class="spacer">
      <td colSpan={props.columns} style={{ height: `${props.height}px` }} />
    </tr>
  ) : null

/** A table of a list that is read by pages: the next page is read when its end comes into view. */
export function PagedTable<row>(
  props: TableProps<row> & {
    list: PagedList<row>
    /** Shown above those of the list, or in the place of an older state of the same row. */
    fresh?: readonly row[]
    empty: ComponentChildren
  },
) {
  const { list, fresh = [], empty, ...table } = props
  const { keyOf } = props
  const foot = useRef<HTMLDivElement>(null)
  const more = useRef(list.more)
  more.current = list.more
  useEffect(() => {
    const element = foot.current
    if (!element || !list.hasMore) return
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting) more.current()
      },
      { rootMargin: '600px' },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [list.hasMore, list.count])

  const { above, newer } = useMemo(() => {
    // A list that was not read has none that are newer.
    if (fresh.length === 0 || (list.error !== undefined && list.count === 0))
      return { above: [] as row[], newer: undefined }
    const known = new Set(list.items.map(keyOf))
    return {
      above: fresh.filter((row) => !known.has(keyOf(row))),
      newer: new Map(fresh.map((row) => [keyOf(row), row])),
    }
  }, [fresh, list.items, list.error])
  const count = above.length + list.count
  const at = (index: number) => {
    const row = above[index] ?? list.at(index - above.length)
    return row && (newer?.get(keyOf(row)) ?? row)
  }
  const show = (start: number, end: number) =>
    list.show(Math.max(0, start - above.length), Math.max(0, end - above.length))
  if (count === 0 && list.loading) return <Skeleton lines={6} />
  return (
    <>
      <Problem error={list.error} onRetry={list.reload} />
      {count > 0 ? <LongTable {...table} rows={{ count, at, show }} /> : list.error ? null : empty}
      {list.hasMore && (
        <div ref={foot} class="table-foot">
          <button type="button" class="button small" disabled={list.loading} onClick={list.more}>
            {list.loading ? 'Loading' : 'More'}
          </button>
        </div>
      )}
    </>
  )
}
