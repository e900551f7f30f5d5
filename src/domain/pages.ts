import { createHash } from 'node:crypto'
import { OperationError } from '../contract/errors/errors.ts'
import { defaultPageSize } from '../contract/limits.ts'
import type { Context } from './context.ts'

type PageRequest = { page_size?: number; page_token?: string }

/** A page of a list: how many items, and the position after which they begin. */
export type Page<position> = { limit: number; after?: position }

/**
 * Reads the page fields of a request. A token is sealed and bound to the caller's organization, the
 * operation and its filters, so that it opens nothing but the list that it came from. A list whose
 * positions were of another form in an earlier version says which ones it takes.
 */
export function readPage<position>(
  context: Context,
  request: PageRequest,
  isPosition: (position: position) => boolean = () => true,
): Page<position> {
  const limit = request.page_size ?? defaultPageSize
  if (!request.page_token) return { limit }
  try {
    const sealed = Buffer.from(request.page_token, 'base64url')
    // Node skips what is not base64, so that a token with something added would open as well.
    if (sealed.toString('base64url') !== request.page_token) throw new Error('not base64url')
    const opened = context.sealer.open(sealed, scopeOf(context, request))
    const position = JSON.parse(opened.toString('utf8')) as position
    if (!isPosition(position)) throw new Error('of an earlier version')
    return { limit, after: position }
  } catch (cause) {
    throw new OperationError('INVALID_PAGE_TOKEN', {
      errors: [
        { field: 'page_token', reason: 'INVALID_FORMAT', detail: 'Is not a token of this list.' },
      ],
      cause,
    })
  }
}

/**
 * Cuts rows to the page and makes the token of the next one. The caller asks the database for one
 * row more than the limit: only then is it known whether another page follows.
 */
export function makePage<row, position>(
  context: Context,
  request: PageRequest,
  rows: readonly row[],
  positionOf: (row: row) => position,
  /** Of the first row that would make the page too large, and of those behind it. */
  isBeyond: (row: row) => boolean = () => false,
): { items: row[]; pagination: { next_page_token: string } } {
  const beyond = rows.findIndex(isBeyond)
  const page_size = request.page_size ?? defaultPageSize
  const limit = beyond < 0 ? page_size : Math.min(beyond, page_size)
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  if (rows.length <= limit || last === undefined)
    return { items, pagination: { next_page_token: '' } }
  return {
    items,
    pagination: { next_page_token: sealPosition(context, request, positionOf(last)) },
  }
}

/** The token of a page that begins after a position. */
export function sealPosition<position>(
  context: Context,
  request: PageRequest,
  position: position,
): string {
  const text = Buffer.from(JSON.stringify(position))
  return context.sealer.seal(text, scopeOf(context, request)).toString('base64url')
}

function scopeOf(context: Context, request: PageRequest): string {
  const { page_size: _size, page_token: _token, ...filters } = request
  const sorted = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))
  const digest = createHash('sha256').update(JSON.stringify(sorted)).digest('base64url')
  const { chain, network, operation, principal } = context
  const at = network === undefined ? chain : `${chain}/${network}`
  return `page:${at}/${operation}/${principal.organization_id}/${digest}`
}
