import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OperationError } from '../contract/errors/errors.ts'
import { createSealer } from '../storage/access/seal.ts'
import type { Context } from './context.ts'
import { makePage, readPage } from './pages.ts'

const sealer = createSealer(randomBytes(32))
const context = (part: Partial<Context> = {}) =>
  ({
    sealer,
    service: 'c',
    chain: 'c',
    operation: 'ListWallets',
    principal: { credential_id: 'k', organization_id: 'o', role: 'ROLE_MEMBER' },
    ...part,
  }) as Context

const tokenOf = (of: Context, filters: object = {}) =>
  makePage(of, { page_size: 1, ...filters }, [1, 2], (row) => [row]).pagination.next_page_token

const refusal = (work: () => unknown) => {
  try {
    work()
    return 'accepted'
  } catch (error) {
    return (error as OperationError).reason
  }
}

describe('pages', () => {
  it('refuse a position of a form that the list no longer takes', () => {
    const request = { page_token: tokenOf(context()) }
    const read = (isPosition: (position: unknown[]) => boolean) =>
      refusal(() => readPage(context(), request, isPosition))
    expect(read(([part]) => typeof part === 'number')).toBe('accepted')
    expect(read(([part]) => typeof part === 'string')).toBe('INVALID_PAGE_TOKEN')
  })

  it('of every size hold each row once and in order', () => {
    const rows = fc.uniqueArray(fc.integer({ min: 0 })).map((all) => all.sort((a, b) => a - b))
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 100 }), (all, page_size) => {
        const seen: number[] = []
        let page_token = ''
        do {
          const request = { page_size, page_token }
          const { limit, after } = readPage<[number]>(context(), request)
          const rest = after ? all.filter((row) => row > after[0]) : all
          const page = makePage(context(), request, rest.slice(0, limit + 1), (row) => [row])
          seen.push(...page.items)
          page_token = page.pagination.next_page_token
        } while (page_token !== '')
        expect(seen).toEqual(all)
      }),
    )
  })

  it('end before a row that would make them too large', () => {
    const page = makePage(
      context(),
      {},
      [1, 2, 3],
      (row) => [row],
      (row) => row > 2,
    )
    expect(page.items).toEqual([1, 2])
    expect(page.pagination.next_page_token).not.toBe('')
  })

  it('have ten rows by default, and no next one when the rows end', () => {
    const rows = [...Array(11).keys()]
    expect(readPage(context(), {})).toEqual({ limit: 10 })
    expect(makePage(context(), {}, rows, (row) => row).items).toHaveLength(10)
    const last = makePage(context(), {}, rows.slice(0, 10), (row) => row)
    expect(last.pagination).toEqual({ next_page_token: '' })
    expect(makePage(context(), {}, [], () => 0).pagination).toEqual({ next_page_token: '' })
  })
})

describe('a page token', () => {
  const principal = { credential_id: 'k', organization_id: 'other', role: 'ROLE_MEMBER' as const }

  it.each([
    ['the same list', {}, {}, 'accepted'],
    [
      'the same list by another credential',
      { principal: { ...principal, organization_id: 'o' } },
      {},
      'accepted',
    ],
    ['another chain', { chain: 't' }, {}, 'INVALID_PAGE_TOKEN'],
    ['another network', { network: 'ropsten' }, {}, 'INVALID_PAGE_TOKEN'],
    ['another operation', { operation: 'ListAssets' }, {}, 'INVALID_PAGE_TOKEN'],
    ['another organization', { principal }, {}, 'INVALID_PAGE_TOKEN'],
    ['another installation', { sealer: createSealer(randomBytes(32)) }, {}, 'INVALID_PAGE_TOKEN'],
    ['another filter', {}, { wallet_id: 'w2' }, 'INVALID_PAGE_TOKEN'],
    ['one filter less', {}, { wallet_id: undefined }, 'INVALID_PAGE_TOKEN'],
    ['one filter more', {}, { address: 'a' }, 'INVALID_PAGE_TOKEN'],
    ['another page size', {}, { page_size: 50 }, 'accepted'],
  ])('for %s', (_, part, filters, outcome) => {
    const page_token = tokenOf(context(), { wallet_id: 'w' })
    const { wallet_id = 'w', ...rest } = filters as { wallet_id?: string }
    const request =
      'wallet_id' in filters && filters.wallet_id === undefined ? rest : { wallet_id, ...rest }
    expect(refusal(() => readPage(context(part), { ...request, page_token }))).toBe(outcome)
  })

  it('does not depend on the order of the filters', () => {
    const page_token = tokenOf(context(), { a: 1, b: 2 })
    const request = { b: 2, page_token, a: 1 }
    expect(readPage(context(), request).after).toEqual([1])
  })

  it('does not take one filter for two', () => {
    const page_token = tokenOf(context(), { a: 'x","b":"y' })
    const request = { a: 'x', b: 'y', page_token }
    expect(refusal(() => readPage(context(), request))).toBe('INVALID_PAGE_TOKEN')
  })

  it('that is anything but one of ours is refused', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ minLength: 1 }), fc.base64String({ minLength: 4 })),
        (page_token) => {
          expect(refusal(() => readPage(context(), { page_token }))).toBe('INVALID_PAGE_TOKEN')
        },
      ),
    )
  })

  it('names its field when it is refused', () => {
    try {
      readPage(context(), { page_token: 'x' })
    } catch (error) {
      expect((error as OperationError).errors).toMatchObject([{ field: 'page_token' }])
      expect(error).toBeInstanceOf(OperationError)
    }
    expect.assertions(2)
  })
})
