import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Address } from '../../contract/fields.ts'
import type { WalletService } from '../../contract/variant.ts'
import { families } from '../registry.ts'

const services = Object.keys(families) as WalletService[]
const lengths = { t: 33, s: 32, p: 32, c: 20 }
const evm = `0x${'1a'.repeat(20)}`

const addressOf = (service: WalletService, bytes: Uint8Array): Buffer => {
  const address = Buffer.from(bytes)
  // A workchain is 0 or -1.
  if (service === 't') address[0] = address[0]! & 1 ? 0xff : 0
  return address
}

describe.each(services)('addresses of %s', (service) => {
  const family = families[service]()
  const length = lengths[service]
  const accounts = fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes) => addressOf(service, bytes))

  it('come back from their canonical text', () => {
    fc.assert(
      fc.property(accounts, (bytes) => {
        const text = family.formatAddress(bytes)
        expect(family.parseAddress(text)).toEqual({ ok: true, bytes })
      }),
    )
  })

  it('take the EVM pattern and give the canonical length', () => {
    const parsed = family.parseAddress(evm)
    expect(parsed.ok && parsed.bytes.length).toBe(length)
  })

  it('are refused with a sentence, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 80 }), (text) => {
        const parsed = family.parseAddress(text)
        if (!parsed.ok) expect(parsed.detail).toMatch(/^[A-Z].*$/s)
      }),
    )
  }, 30_000)

  it('print an empty account as an empty text', () => {
    expect(family.formatAddress(Buffer.alloc(0))).toBe('')
  })

  it('have transaction identifiers that come back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const text = family.formatTransactionHash(bytes)
        expect(family.parseTransactionHash(text)).toEqual(Buffer.from(bytes))
      }),
    )
    for (const text of ['', 'x', '0x12', 'l'.repeat(44), '1'.repeat(100)])
      expect(family.parseTransactionHash(text)).toBeUndefined()
  })
})

describe('the forms of T', () => {
  const ton = families.t()
  const raw = '0:83dfd552e63729b472fcbcc8c45ebcc6691702558b68ec7527e1ba403a0f31a8'
  // The example of TEP-2's own page, in its forms.
  const forms = [
    'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N',
    'UQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqEBI',
    raw,
    raw.toUpperCase(),
  ]

  it.each(forms)('%s is one account', (text) => {
    const parsed = ton.parseAddress(text)
    expect(parsed.ok && ton.formatAddress(parsed.bytes)).toBe(raw)
    expect(parsed.ok && ton.formatUserFriendly?.(parsed.bytes)).toBe(forms[1])
  })

  it.each([
    ['wrong checksum', 'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2M'],
    ['lower case', forms[0]!.toLowerCase()],
    ['workchain 300', `300:${'0'.repeat(64)}`],
    ['workchain 1e0', `1e0:${'0'.repeat(64)}`],
    ['a space', ` ${raw}`],
    ['a third part', `${raw}:1`],
    ['test network', 'kQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqKYH'],
  ])('%s is refused', (_, text) => {
    expect(ton.parseAddress(text).ok).toBe(false)
  })

  it('take the mark of test networks on a test network', () => {
    const parsed = ton.parseAddress(forms[0]!)
    const test = families.t({ production: false })
    const text = parsed.ok ? test.formatUserFriendly!(parsed.bytes) : ''
    expect(text).toMatch(/^0Q/)
    expect(test.parseAddress(text)).toEqual(parsed)
    expect(ton.parseAddress(text)).toEqual({ ok: false, detail: 'Is for test networks only.' })
  })
})

describe('the forms of P', () => {
  const polkadot = families.p()
  const alice = '0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d'

  it.each([
    '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
    '15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5',
    'HNZata7iMYWmk5RvZRTiAsSDhV8366zq2YGb3tLH5Upf74F',
    alice,
  ])('%s is Alice', (text) => {
    expect(polkadot.parseAddress(text)).toEqual({
      ok: true,
      bytes: Buffer.from(alice.slice(2), 'hex'),
    })
  })

  it('print with the prefix of the chain, also with one of two bytes', () => {
    const bytes = Buffer.from(alice.slice(2), 'hex')
    expect(polkadot.formatAddress(bytes)).toBe('15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5')
    const pattern = new RegExp((Address.each.P as { pattern?: string }).pattern ?? '-')
    // Zeros at the beginning are one character each, which makes an address of Polkadot short.
    const short = [0, 1, 31].map((zeros) => Buffer.alloc(32).fill(0xff, zeros))
    for (const ss58_prefix of [0, 2, 42, 63, 64, 255, 1284, 16_383])
      for (const account of [bytes, Buffer.alloc(32), ...short]) {
        const text = families.p({ ss58_prefix }).formatAddress(account)
        expect(polkadot.parseAddress(text)).toEqual({ ok: true, bytes: account })
        expect(text).toMatch(pattern)
      }
  })

  it('give an Ethereum address the account of Asset Hub', () => {
    const parsed = polkadot.parseAddress(evm)
    expect(parsed.ok && parsed.bytes.toString('hex')).toBe('1a'.repeat(20) + 'ee'.repeat(12))
  })

  it('refuse a wrong checksum', () => {
    expect(polkadot.parseAddress('5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ').ok).toBe(false)
  })
})

describe('the coin types of S', () => {
  const sui = families.s()
  const long = `0x${'2'.padStart(64, '0')}`

  it.each([
    ['0x2::sui::SUI', ''],
    ['2::sui::SUI', ''],
    ['0xA::coin::USDC', `0x${'a'.padStart(64, '0')}::coin::USDC`],
    ['0x2::lp::LP<0x2::sui::SUI,0x2::x::Y>', `${long}::lp::LP<${long}::sui::SUI, ${long}::x::Y>`],
    ['0x2::v::V<vector<u8>>', `${long}::v::V<vector<u8>>`],
  ])('%s is %j', (text, canonical) => {
    expect(sui.parseToken?.(text)).toEqual({ ok: true, bytes: Buffer.from(canonical) })
  })

  it.each(['', '0x2', '0x2::sui', 'sui::SUI', '0x2::sui::SUI>', '0x2::a::B<', '0x2::a::B<>', 'u8'])(
    '%j is refused',
    (text) => {
      expect(sui.parseToken?.(text).ok).toBe(false)
    },
  )
})
