import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJson } from '../lib/json/json.ts'
import { OperationError } from './errors/errors.ts'
import { catalogue, findOperation } from './operations/catalogue.ts'
import { createCheck } from './validate.ts'

const address = `0x${'a'.repeat(40)}`

const check = (service: string, name: string) => {
  const entry = findOperation(service, name)
  if (!entry) throw new Error(`${service}/${name}`)
  return createCheck(entry)
}

/** The violations as `field REASON: detail`, or the accepted request. */
const outcome = (service: string, name: string, body: unknown) => {
  try {
    return check(service, name)(body)
  } catch (error) {
    if (!(error instanceof OperationError)) throw error
    expect(error.reason).toBe('INVALID_REQUEST')
    return error.errors.map(({ field, reason, detail }) => `${field} ${reason}: ${detail}`)
  }
}

describe('a good request', () => {
  test('gets its defaults', () => {
    expect(outcome('c', 'RegisterWallet', { name: 'n' })).toEqual({ name: 'n', confirmation: 10 })
    expect(outcome('p', 'RegisterWallet', { name: 'n' })).toEqual({
      name: 'n',
      import_asset: false,
    })
    expect(outcome('s', 'ListAssets', { asset_type: 'ASSET_TYPE_S' })).toMatchInlineSnapshot(`
      {
        "asset_type": "ASSET_TYPE_S",
        "exclude_zero_balance": false,
        "is_aggregated": false,
        "page_size": 10,
      }
    `)
    expect(outcome('c', 'ListWallets', {})).toEqual({ page_size: 10 })
  })

  test('keeps what it says, false and 0 included', () => {
    const body = { name: 'n', confirmation: 0, address: '0x1', import_asset: false }
    expect(outcome('s', 'RegisterWallet', body)).toEqual(body)
  })

  test('is not changed', () => {
    const body = Object.freeze({ name: 'n' })
    expect(check('c', 'RegisterWallet')(body)).not.toBe(body)
  })

  test('counts characters, not UTF-16 units', () => {
    expect(outcome('p', 'RegisterWallet', { name: '🚢'.repeat(50) })).toHaveProperty('name')
    expect(outcome('p', 'RegisterWallet', { name: '🚢'.repeat(51) })).toEqual([
      'name TOO_LONG: Must have at most 50 characters.',
    ])
  })

  test('may say -0, which is 0', () => {
    expect(outcome('q', 'GetBlock', { block_number: -0 })).toEqual({ block_number: -0 })
  })
})

describe('a bad request', () => {
  test('gets all violations at once, each with its field', () => {
    const body = {
      wallet_id: 7,
      from: 'x',
      value: '01',
      gas: '-1',
      nonce: 1.5,
      data: '0x1',
      transaction_id: '',
      gasPrice: '1',
    }
    expect(outcome('c', 'CreateTransaction', body)).toMatchInlineSnapshot(`
      [
        "to REQUIRED: Is required.",
        "gasPrice UNKNOWN_FIELD: No such field. Did you mean gas_price?",
        "wallet_id INVALID_TYPE: Must be a string.",
        "from INVALID_FORMAT: Must be 0x and 40 lower-case hex digits (^0x[a-f0-9]{40}$).",
        "value INVALID_FORMAT: Must be decimal digits without sign, exponent or leading zeros (^(0|[1-9][0-9]*)$).",
        "data INVALID_FORMAT: Must be 0x and two hex digits per byte (^0x([0-9a-fA-F]{2})*$).",
        "gas INVALID_FORMAT: Must be decimal digits without sign, exponent or leading zeros (^(0|[1-9][0-9]*)$).",
        "nonce INVALID_TYPE: Must be an integer.",
        "transaction_id TOO_SHORT: Must have at least 1 character.",
      ]
    `)
  })

  test('gets every bad address of a batch', () => {
    const addresses = [address, 'x', address, 7, address.toUpperCase()]
    expect(
      outcome('c', 'BatchRegisterAddresses', { wallet_id: 'w', addresses }),
    ).toMatchInlineSnapshot(`
      [
        "addresses[1] INVALID_FORMAT: Must be 0x and 40 lower-case hex digits (^0x[a-f0-9]{40}$).",
        "addresses[3] INVALID_TYPE: Must be a string.",
        "addresses[4] INVALID_FORMAT: Must be in lower case: 0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      ]
    `)
    const many = { wallet_id: 'w', addresses: Array(1000).fill('x') }
    expect(outcome('c', 'BatchRegisterAddresses', many)).toHaveLength(1000)
  })

  test('is named by the path inside its objects', () => {
    const body = {
      wallet_id: 'w',
      contract_type: 'CONTRACT_TYPE_ERC1155',
      from: address,
      to: address,
      token_payload: { erc20: { contract_address: address, amount: '1' }, erc_721: {} },
    }
    expect(outcome('c', 'CreateTokenTransaction', body)).toMatchInlineSnapshot(`
      [
        "contract_type NOT_ALLOWED: Must be one of CONTRACT_TYPE_ERC20, CONTRACT_TYPE_ERC721.",
        "token_payload.erc_721 UNKNOWN_FIELD: No such field. Did you mean erc721?",
        "token_payload.erc20.value REQUIRED: Is required.",
        "token_payload.erc20.amount UNKNOWN_FIELD: No such field.",
      ]
    `)
  })

  test.each([
    [0, 'addresses TOO_FEW: Must have at least 1 item.'],
    [1001, 'addresses TOO_MANY: Must have at most 1000 items.'],
  ])('with %i addresses', (length, line) => {
    const body = { wallet_id: 'w', addresses: Array(length).fill(address) }
    expect(outcome('c', 'BatchRegisterAddresses', body)).toEqual([line])
  })

  test.each([undefined, null, 7, 'text', true, [], [{}]])('that is %j', (body) => {
    expect(outcome('c', 'ListWallets', body)).toEqual([' INVALID_TYPE: Must be an object.'])
  })

  test('with null where a field may be left out', () => {
    expect(outcome('c', 'ListWallets', { page_token: null })).toEqual([
      'page_token INVALID_TYPE: Must be a string.',
    ])
  })
})

describe('an unknown field', () => {
  test.each([
    [{ name: 'n', adress: address }, 'adress UNKNOWN_FIELD: No such field. Did you mean address?'],
    [
      { name: 'n', confirmations: 1 },
      'confirmations UNKNOWN_FIELD: No such field. Did you mean confirmation?',
    ],
    [{ name: 'n', import_asset: true }, 'import_asset UNKNOWN_FIELD: No such field.'],
    [{ name: 'n', whatever: 1 }, 'whatever UNKNOWN_FIELD: No such field.'],
    [{ name: 'n', constructor: 1 }, 'constructor UNKNOWN_FIELD: No such field.'],
    [{ name: 'n', toString: 1 }, 'toString UNKNOWN_FIELD: No such field.'],
    [{ name: 'n', '': 1 }, '"" UNKNOWN_FIELD: No such field.'],
    [{ name: 'n', 'a/b~c.d[0]': 1 }, 'a/b~c.d[0] UNKNOWN_FIELD: No such field.'],
  ])('%j', (body, line) => expect(outcome('c', 'RegisterWallet', body)).toEqual([line]))

  test('__proto__ is one, and changes no prototype', () => {
    const parsed = parseJson(new TextEncoder().encode('{"name":"n","__proto__":{"address":"x"}}'))
    expect(outcome('c', 'RegisterWallet', parsed.ok && parsed.value)).toEqual([
      '__proto__ UNKNOWN_FIELD: No such field.',
    ])
  })
})

describe('at least one of', () => {
  test('names every choice', () => {
    expect(outcome('s', 'ListTransfers', {})).toEqual([
      'wallet_id AT_LEAST_ONE_REQUIRED: At least one of wallet_id, address, transaction_digest is required.',
      'address AT_LEAST_ONE_REQUIRED: At least one of wallet_id, address, transaction_digest is required.',
      'transaction_digest AT_LEAST_ONE_REQUIRED: At least one of wallet_id, address, transaction_digest is required.',
    ])
  })

  test('is named beside other violations', () => {
    expect(outcome('c', 'GetWallet', { walletid: 'w' })).toMatchInlineSnapshot(`
      [
        "walletid UNKNOWN_FIELD: No such field. Did you mean wallet_id?",
        "wallet_id AT_LEAST_ONE_REQUIRED: At least one of wallet_id, address is required.",
        "address AT_LEAST_ONE_REQUIRED: At least one of wallet_id, address is required.",
      ]
    `)
  })

  test.each([{ wallet_id: 'w' }, { address }, { wallet_id: 'w', address }])(
    '%j is enough',
    (body) => expect(outcome('c', 'GetWallet', body)).toEqual(body),
  )

  test('does not report the choice when one member is present but invalid', () => {
    expect(outcome('c', 'GetWallet', { wallet_id: '' })).toEqual([
      'wallet_id TOO_SHORT: Must have at least 1 character.',
    ])
  })
})

describe('an address', () => {
  test.each(['0xAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', address.toUpperCase()])(
    '%s: the lower-case form is shown',
    (text) =>
      expect(outcome('c', 'GetWallet', { address: text })).toEqual([
        `address INVALID_FORMAT: Must be in lower case: ${address}`,
      ]),
  )

  test('of a wrong form: the right form is shown', () => {
    expect(outcome('c', 'GetWallet', { address: '0x12' })).toEqual([
      'address INVALID_FORMAT: Must be 0x and 40 lower-case hex digits (^0x[a-f0-9]{40}$).',
    ])
  })

  test.each([
    ['t', `0:${'A'.repeat(64)}`],
    ['t', `-1:${'0'.repeat(64)}`],
    ['t', 'EQDtFpEwcFAEcRe5mLVh2N6C0x-_hJEM7W61_JLnSF74p4q2'],
    ['s', '0x2'],
    ['s', `0x${'F'.repeat(64)}`],
    ['p', '15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5'],
    ['p', `0x${'0'.repeat(64)}`],
  ])('of %s: %s', (service, text) =>
    expect(outcome(service, 'GetWallet', { address: text })).toEqual({ address: text }),
  )

  test.each([
    ['c', `${address}\n`],
    ['c', `0x${'a'.repeat(41)}`],
    ['t', '2:00'],
    ['s', '0x'],
    ['p', '0OIl'],
  ])('of %s is not %j', (service, text) =>
    expect(outcome(service, 'GetWallet', { address: text })).toHaveLength(1),
  )
})

describe('a number', () => {
  const tooBig = 'Must be at most 9007199254740991.'
  test.each([
    ['9007199254740993', `block_number OUT_OF_RANGE: ${tooBig}`],
    ['1e309', 'block_number INVALID_TYPE: Must be an integer.'],
    ['-1', 'block_number OUT_OF_RANGE: Must be at least 0.'],
    ['1.5', 'block_number INVALID_TYPE: Must be an integer.'],
    ['"1"', 'block_number INVALID_TYPE: Must be an integer.'],
    ['true', 'block_number INVALID_TYPE: Must be an integer.'],
  ])('%s is refused', (text, line) => {
    expect(outcome('q', 'GetBlock', JSON.parse(`{"block_number":${text}}`))).toEqual([line])
  })

  test.each(['0', '1.0', '1e3', '9007199254740991', '-0'])('%s is taken', (text) => {
    const body = JSON.parse(`{"block_number":${text}}`)
    expect(outcome('q', 'GetBlock', body)).toEqual(body)
  })

  test.each([0, 101, -1])('page_size %i is out of range', (page_size) => {
    expect(outcome('c', 'ListWallets', { page_size })).toEqual([
      `page_size OUT_OF_RANGE: Must be at ${page_size > 100 ? 'most 100' : 'least 1'}.`,
    ])
  })
})

test.each(['0x10', '01', '', '1.0', '1e3', '-1', '+1', ' 1', '1\n', '１'])(
  'the amount %j is refused',
  (value) => {
    const body = { wallet_id: 'w', from: address, to: address, value }
    expect(outcome('c', 'CreateTransaction', body)).toHaveLength(1)
  },
)

test('an unknown asset type is answered with the known ones', () => {
  expect(outcome('c', 'ListAssets', { asset_type: 'ASSET_TYPE_T' })).toEqual([
    'asset_type NOT_ALLOWED: Must be one of ASSET_TYPE_C, ASSET_TYPE_ERC20, ASSET_TYPE_ERC721, ASSET_TYPE_ERC1155.',
  ])
})

describe.each(catalogue.map((entry) => [`${entry.service}/${entry.name}`, entry] as const))(
  '%s',
  (_, entry) => {
    const run = createCheck(entry)
    const declared = Object.keys(entry.row.request)
    const key = fc.oneof(fc.constantFrom('x', ...declared), fc.string())
    const body = fc.oneof(fc.jsonValue(), fc.dictionary(key, fc.jsonValue()))

    test('takes any JSON without another failure than INVALID_REQUEST, and names fields', () => {
      fc.assert(
        fc.property(body, (value) => {
          try {
            expect(Object.keys(run(value)).filter((name) => !declared.includes(name))).toEqual([])
          } catch (error) {
            if (!(error instanceof OperationError)) throw error
            expect(error.reason).toBe('INVALID_REQUEST')
            expect(error.errors.length).toBeGreaterThan(0)
            for (const { reason, detail } of error.errors) {
              expect(reason).toMatch(/^[A-Z_]+$/)
              expect(detail).toMatch(/^[A-Z].*[.?0-9a-z)]$/s)
            }
          }
        }),
        { numRuns: 100 },
      )
    })
  },
)
