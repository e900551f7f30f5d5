import { describe, expect, test } from 'vitest'
import { findOperation } from './operations/catalogue.ts'
import { createProjection } from './project.ts'

const projection = (service: string, name: string) => {
  const entry = findOperation(service, name)
  if (!entry) throw new Error(`${service}/${name}`)
  return createProjection(entry)
}

/** What a handler may return: the fields of every variant, and some that must stay hidden. */
const wallet = {
  wallet_id: 'w',
  name: 'n',
  addresses: ['a'],
  create_time: '2026-01-01T00:00:00.000Z',
  update_time: '2026-01-01T00:00:00.000Z',
  confirmation: 10,
  address_mapping: [{ address: 'a', user_friendly_address: 'u', key: 'secret' }],
  organization_id: 'secret',
}

describe('an answer', () => {
  test('of T has the address mapping and no confirmation', () => {
    expect(projection('t', 'GetWallet')({ wallet })).toMatchInlineSnapshot(`
      {
        "wallet": {
          "address_mapping": [
            {
              "address": "a",
              "user_friendly_address": "u",
            },
          ],
          "addresses": [
            "a",
          ],
          "create_time": "2026-01-01T00:00:00.000Z",
          "name": "n",
          "update_time": "2026-01-01T00:00:00.000Z",
          "wallet_id": "w",
        },
      }
    `)
  })

  test('of C has the confirmation and no address mapping', () => {
    expect(projection('c', 'GetWallet')({ wallet })).toMatchInlineSnapshot(`
      {
        "wallet": {
          "addresses": [
            "a",
          ],
          "confirmation": 10,
          "create_time": "2026-01-01T00:00:00.000Z",
          "name": "n",
          "update_time": "2026-01-01T00:00:00.000Z",
          "wallet_id": "w",
        },
      }
    `)
  })

  test('of P has neither, in every item of a list', () => {
    const page = { wallets: [wallet, wallet], pagination: { next_page_token: '', total: 2 } }
    const projected = projection('p', 'ListWallets')(page) as {
      wallets: object[]
      pagination: object
    }
    expect(projected.wallets.map((one) => Object.keys(one))).toEqual(
      Array(2).fill(['wallet_id', 'name', 'addresses', 'create_time', 'update_time']),
    )
    expect(projected.pagination).toEqual({ next_page_token: '' })
  })

  test('without declared fields is empty', () => {
    expect(projection('c', 'RemoveAddress')({ secret: 1 })).toEqual({})
  })

  test('at the top level is cut down as well', () => {
    const record = { address: 'a', wallet_id: 'w', user_friendly_address: 'u', id: 7 }
    expect(projection('s', 'GetAddress')(record)).toEqual({ address: 'a', wallet_id: 'w' })
  })
})

describe('a field', () => {
  const histories = projection('c', 'ListWebhookHistories')
  const contracts = projection('c', 'ListContracts')

  test('that is an open object passes whole', () => {
    const data = { anything: { at: ['all'] } }
    expect(histories({ webhook_histories: [{ data, secret: 1 }] })).toEqual({
      webhook_histories: [{ data }],
    })
  })

  test('that may be null stays null, and is cut down otherwise', () => {
    const erc20 = { contract_address: 'c', name: 'n', symbol: 's', decimals: 6, owner: 'secret' }
    const given = [{ contract_metadata: null }, { contract_metadata: { erc20, more: 1 } }]
    const { owner: _, ...shown } = erc20
    expect(contracts({ contracts: given })).toEqual({
      contracts: [{ contract_metadata: null }, { contract_metadata: { erc20: shown } }],
    })
  })

  test('that is undefined is left out; 0 and "" are not', () => {
    const limits = projection('admin', 'GetRateLimit')
    const info = { chain: '', per_second_limit: 0, per_hour_limit: undefined }
    const projected = limits({ ratelimit_info: info }) as { ratelimit_info: object }
    expect(Object.entries(projected.ratelimit_info)).toEqual([
      ['chain', ''],
      ['per_second_limit', 0],
    ])
  })
})
