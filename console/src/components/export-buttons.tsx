import { allRows, download, toCsv } from '../lib/export.ts'
import { toJson } from '../lib/format.ts'
import type { Page } from '../lib/page-list.ts'
import { Action } from './action.tsx'

/** Downloads all pages of a list as CSV or JSON. */
export const ExportButtons = <T extends object>(props: {
  name: string
  load: (page_token: string | undefined) => Promise<Page<T>>
}) => {
  const run = (format: 'csv' | 'json') => async () => {
    const rows = await allRows(props.load)
    if (format === 'csv') download(`${props.name}.csv`, 'text/csv', toCsv(rows))
    else download(`${props.name}.json`, 'application/json', toJson(rows))
  }
  return (
    <>
      <Action small run={run('csv')}>
        Export CSV
      </Action>
      <Action small run={run('json')}>
        JSON
      </Action>
    </>
  )
}
