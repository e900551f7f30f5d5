import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatCount } from '../lib/format.ts'
import type { PagedList } from '../lib/use-resource.ts'
import { visibleRange } from '../lib/visible-range.ts'
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
  rows: readonly row[]
  keyOf: (row: row) => string
  /** Rows that came while the page was open. */
  isNew?: (row: row) => boolean
}

/** Shorter tables are rendered whole. */
const wholeTable = 120

/** A table of any length: only the rows that can be seen are in the document. */
export function Table<row>({ label, columns, rows, keyOf, isNew }: TableProps<row>) {
  const body = useRef<HTMLTableSectionElement>(null)
  const [range, setRange] = useState({ start: 0, end: wholeTable })
  const [height, setHeight] = useState(40)
  const isVirtual = rows.length > wholeTable

  useLayoutEffect(() => {
    const measured = body.current?.querySelector<HTMLElement>('tr[data-row]')?.offsetHeight
    if (measured && measured !== height) setHeight(measured)
  })
  useEffect(() => {
    if (!isVirtual) return
    let frame = 0
    const update = () => {
      frame = 0
      const top = body.current?.getBoundingClientRect().top ?? 0
      const next = visibleRange({ top, height, viewport: window.innerHeight, count: rows.length })
      setRange((last) => (last.start === next.start && last.end === next.end ? last : next))
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
  }, [isVirtual, rows.length, height])

  const { start, end } = isVirtual ? range : { start: 0, end: rows.length }
  return (
    <Scroll class="table-box" label={label}>
      <table aria-rowcount={isVirtual ? rows.length + 1 : undefined}>
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
          <Spacer rows={start} height={height} columns={columns.length} />
          {rows.slice(start, end).map((row, index) => (
            <tr
              key={keyOf(row)}
              data-row
              data-new={isNew?.(row) || undefined}
              aria-rowindex={isVirtual ? start + index + 2 : undefined}
            >
              {columns.map(({ title, cell, align, hide }) => (
                <td key={title} data-align={align} data-hide={hide}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
          <Spacer
            rows={rows.length - Math.min(end, rows.length)}
            height={height}
            columns={columns.length}
          />
        </tbody>
      </table>
    </Scroll>
  )
}

const Spacer = (props: { rows: number; height: number; columns: number }) =>
  props.rows > 0 ? (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row is not focusable, and this one is no row of the table
    <tr aria-hidden="true" class="spacer">
      <td colSpan={props.columns} style={{ height: `${props.rows * props.height}px` }} />
    </tr>
  ) : null

/** A table of a list that is read by pages: the next page is read when its end comes into view. */
export function PagedTable<row>(
  props: Omit<TableProps<row>, 'rows'> & {
    list: PagedList<row>
    /** Shown above those of the list. */
    fresh?: readonly row[]
    empty: ComponentChildren
  },
) {
  const { list, fresh = [], empty, ...table } = props
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
  }, [list.hasMore, list.items.length])

  const known = new Set(fresh.map(props.keyOf))
  const rows = known.size
    ? [...fresh, ...list.items.filter((row) => !known.has(props.keyOf(row)))]
    : list.items
  if (rows.length === 0 && list.loading) return <Skeleton lines={6} />
  return (
    <>
      <Problem error={list.error} onRetry={list.reload} />
      {rows.length > 0 ? <Table {...table} rows={rows} /> : list.error ? null : empty}
      {list.isFull && (
        <p class="table-foot soft">
          The newest {formatCount(list.items.length)} rows. Filters and exports reach the others.
        </p>
      )}
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
