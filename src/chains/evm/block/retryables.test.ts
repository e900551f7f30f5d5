import { describe, expect, it } from 'vitest'
import type { RawReceipt, ReadTransaction } from '../codec/raw.ts'
import { addressOf } from '../testing/stub-chain.ts'
import { createCallees, createNamedAddresses } from './names.ts'
import { nativeEffects, noParty } from './native.ts'

// Amounts as OffchainLabs/nitro books them: arbos/tx_processor.go.

const [sender, refundee, target] = [1, 2, 3].map(addressOf) as [string, string, string]
const hexOf = (value: bigint | number) => `0x${value.toString(16)}`
const hash = `0x${'7'.repeat(64)}`

const effectsOf = (transaction: object, receipt: object, internal: object[] = []) => {
  const addresses = createNamedAddresses()
  const names: string[] = []
  const add = (address: string) => {
    const number = addresses.add(address)
    names[number] = address
    return number
  }
  const effects = nativeEffects(
    {
      transaction: {
        hash,
        from: sender,
        to: target,
        value: '0x0',
        nonce: '0x0',
        ...transaction,
      } as ReadTransaction,
      receipt: {
        status: '0x1',
        gasUsed: '0x0',
        effectiveGasPrice: '0xa',
        logs: [],
        ...receipt,
      } as never as RawReceipt,
      internal: internal as never,
    },
    { addresses: { ...addresses, add }, callees: createCallees() },
  )
  const changes = new Map<string, bigint>([[sender, -effects.fee]])
  for (const { from, to, value, failed } of effects.movements) {
    if (failed) continue
    for (const [number, change] of [
      [from, -value],
      [to, value],
    ] as const)
      if (number !== noParty)
        changes.set(names[number]!, (changes.get(names[number]!) ?? 0n) + change)
  }
  const of = (address: string) => changes.get(address) ?? 0n
  return { ...effects, of, moved: effects.movements.length }
}

const submit = {
  type: '0x69',
  depositValue: hexOf(100_000),
  retryValue: hexOf(30_000),
  retryData: '0x1234',
  l1BaseFee: hexOf(2),
  maxSubmissionFee: hexOf(5_000),
  gas: hexOf(1_000),
  maxFeePerGas: hexOf(30),
  refundTo: refundee,
}
const submission = 2n * (1_400n + 6n * 2n)

describe('a retryable ticket', () => {
  it('explains the balances of its sender and of the one who is refunded', () => {
    const { of, fee } = effectsOf(submit, { gasUsed: hexOf(1_000) })
    expect(fee).toBe(submission + 10_000n)
    const refunds = 5_000n - submission + 20_000n
    expect(of(refundee)).toBe(refunds)
    // Minted, less the fees, the refunds and what is in the escrow.
    expect(of(sender)).toBe(100_000n - submission - 10_000n - refunds - 30_000n)
  })

  it('gives back what was meant for gas where no redeem is scheduled', () => {
    const { of, fee } = effectsOf(submit, {})
    expect(fee).toBe(submission)
    expect(of(refundee)).toBe(5_000n - submission + 30_000n)
    expect(of(sender)).toBe(100_000n - 5_000n - 30_000n - 30_000n)
  })

  it('refunds no more than was deposited', () => {
    const deposit = { ...submit, depositValue: hexOf(30_000n + submission + 7n) }
    const { of } = effectsOf(deposit, { gasUsed: hexOf(1_000) })
    expect(of(refundee)).toBe(7n)
    expect(of(sender)).toBe(-10_000n)
  })

  it('that fails takes no fee and returns it as far as the deposit paid it', () => {
    const { of, fee } = effectsOf(
      { ...submit, depositValue: hexOf(31_000) },
      { status: '0x0', gasUsed: '0x0' },
    )
    expect(fee).toBe(0n)
    expect(of(refundee)).toBe(1_000n)
    expect(of(sender)).toBe(30_000n)
  })

  it('counts nothing twice that a trace shows too', () => {
    const traced = [
      { from: addressOf(0), to: sender, value: 100_000n },
      { from: sender, to: refundee, value: 5_000n },
    ]
    const plain = effectsOf(submit, { gasUsed: hexOf(1_000) })
    const both = effectsOf(submit, { gasUsed: hexOf(1_000) }, traced)
    expect(both.movements).toEqual(plain.movements)
  })

  it('does not refund its sender to the sender', () => {
    const { of, moved } = effectsOf({ ...submit, refundTo: sender }, { gasUsed: hexOf(1_000) })
    expect(moved).toBe(2)
    expect(of(sender)).toBe(100_000n - submission - 10_000n - 30_000n)
  })
})

describe('the redeem of a retryable ticket', () => {
  const redeem = {
    type: '0x68',
    value: hexOf(30_000),
    ticketId: hash,
    refundTo: refundee,
    maxRefund: hexOf(12_000),
    submissionFeeRefund: hexOf(submission),
    gas: hexOf(1_000),
  }

  it('takes its value from the escrow and gives back fees', () => {
    const { of, fee } = effectsOf(redeem, { gasUsed: hexOf(400) })
    expect(fee).toBe(0n)
    expect(of(target)).toBe(30_000n)
    const pool = 12_000n - submission - 4_000n
    expect(of(refundee)).toBe(submission + pool)
    // What the deposit did not pay goes to the sender.
    expect(of(sender)).toBe(6_000n - pool)
  })

  it('that fails keeps the fee of the submission, and the escrow its value', () => {
    const { of } = effectsOf(redeem, { status: '0x0', gasUsed: hexOf(1_000) })
    expect([of(target), of(refundee), of(sender)]).toEqual([0n, 0n, 0n])
  })

  it('is read as before where a node leaves its fields out', () => {
    const { of } = effectsOf({ type: '0x68', value: '0x5' }, { gasUsed: hexOf(400) })
    expect([of(target), of(sender)]).toEqual([5n, -5n])
  })
})
