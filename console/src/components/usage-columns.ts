import { formatCount, formatPercent } from '../lib/format.ts'
import type { UsageSum } from '../lib/usage.ts'
import type { Column } from './table.tsx'

/** The columns of counted calls. */
export const usageColumns: readonly Column<Pick<UsageSum, 'calls' | 'errors' | 'refused'>>[] = [
  { title: 'Calls', align: 'end', cell: ({ calls }) => formatCount(calls) },
  {
    title: 'Errors',
    align: 'end',
    cell: ({ calls, errors }) => formatPercent(calls > 0 ? errors / calls : null),
  },
  {
    title: 'Refused',
    align: 'end',
    hide: 'narrow',
    cell: ({ refused }) => formatCount(refused),
  },
]
