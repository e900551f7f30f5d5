import { describe, expect, it } from 'vitest'
import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { createBranchCheck, reachBranch, type Standing } from './branch-check.ts'
import { createMethods } from './methods.ts'
import type { BlockTarget } from './target.ts'
import { createBlockReader } from './wrong-block.ts'

const methods = createMethods({ prefix: 'eth', allowed: ['eth_getBlockReceipts'] })
const hash = (value: number) => `0x${value.toString(16).padStart(64, '0')}`
const quantity = (value: number) => `0x${value.toString(16)}`

/** A chain of the blocks 90 to 100; block 101 has left it, and number n has the hash n. */
const open = (changes: Partial<Canonical> = {}) => {
  const view = {
    head: () => ({ number: 100 }),
    isLinking: () => false,
    isDeepening: () => false,
    bestHashAt: (number: number) => (number >= 90 && number <= 100 ? hash(number) : undefined),
    isGone: (value: string) => value === hash(0xdead),
    final: () => 80,
    generation: () => 7,
    settle: async () => {},
    ...changes,
  } as Canonical
  const branch = createBranchCheck(view, createBlockReader())
  const standing = (name: string, number: number, result: unknown, asked = '', begun = 7) => {
    const method = methods.find(name)
    if (!method) throw new Error(name)
    const keep = number < 0 ? 'answer' : 'block'
    const target = { number, hash: asked, keep } as BlockTarget
    return branch.answer(method, target, JSON.stringify(result), begun)
  }
  return { view, branch, standing }
}

const block = (number: number, own: string, transactions: unknown[] = []) => ({
  transactions,
  number: quantity(number),
  hash: own,
})
const receipt = (number: number, own: string) => ({
  blockNumber: quantity(number),
  blockHash: own,
  logs: [{ blockHash: own }],
})

describe('an answer of a node', () => {
  it('is on the branch when its own hash is, not that of one of its transactions', () => {
    const { standing } = open()
    const byNumber = (result: unknown) => standing('eth_getBlockByNumber', 100, result)
    expect(byNumber(block(100, hash(100)))).toBe('on')
    const transaction = { hash: hash(100), blockHash: hash(5) }
    expect(byNumber(block(100, hash(5), [transaction]))).toBe('off')
    expect(byNumber(block(100, hash(5), [{ ...transaction, blockHash: hash(100) }]))).toBe('off')
  })

  it('is off the branch when a transaction or receipt in it is of another block', () => {
    const { standing } = open()
    const mixed = [
      { hash: hash(1), blockHash: hash(100) },
      { hash: hash(2), blockHash: hash(5) },
    ]
    expect(standing('eth_getBlockByNumber', 100, block(100, hash(100), mixed))).toBe('off')
    const receipts = [receipt(100, hash(100)), receipt(100, hash(100))]
    expect(standing('eth_getBlockReceipts', 100, receipts)).toBe('on')
    const other = [receipt(100, hash(100)), receipt(100, hash(5))]
    expect(standing('eth_getBlockReceipts', 100, other)).toBe('off')
  })

  it('that is empty counts only if the chain did not change meanwhile', () => {
    const { standing } = open()
    expect(standing('eth_getBlockReceipts', 100, [])).toBe('on')
    expect(standing('eth_getBlockReceipts', 100, [], '', 6)).toBe('off')
  })

  it('about a hash that has left the chain is off the branch, also where it names no block', () => {
    const { standing } = open()
    const count = (asked: string) =>
      standing('eth_getBlockTransactionCountByHash', -1, '0x1', asked)
    expect([count(hash(100)), count(hash(0xdead))]).toEqual(['on', 'off'])
  })

  it('above the tip is unknown, and off the branch when it has left the chain', () => {
    const { standing, branch } = open()
    const of = (own: string) => standing('eth_getTransactionReceipt', -1, receipt(101, own))
    expect([of(hash(101)), of(hash(0xdead))]).toEqual(['unknown', 'off'])
    const logs = (own: string) =>
      branch.logs(JSON.stringify([{ blockNumber: quantity(101), blockHash: own }]), 7)
    expect([logs(hash(101)), logs(hash(0xdead))]).toEqual(['unknown', 'off'])
  })

  it('below the window is unknown only while its blocks are being fetched', () => {
    const at = (number: number, isDeepening: boolean) =>
      open({ isDeepening: () => isDeepening }).standing(
        'eth_getTransactionReceipt',
        -1,
        receipt(number, hash(number)),
      )
    expect([at(85, false), at(85, true), at(80, true)]).toEqual(['on', 'unknown', 'on'])
  })
})

describe('an answer above the tip', () => {
  const reach = async (answers: RawJson[]) => {
    const { view } = open()
    const rest = answers.map((result) => ({ outcome: { ok: true as const, result }, begun: 7 }))
    const first = rest.shift()
    if (!first) throw new Error('no answer')
    const standingOf = (result: RawJson): Standing => (result === 'on' ? 'on' : 'unknown')
    const fetch = async () => rest.shift() ?? first
    const { outcome } = await reachBranch({
      view,
      first,
      fetch,
      standingOf,
      ifOff: () => undefined,
    })
    return 'ok' in outcome && outcome.ok ? outcome.result : undefined
  }

  it('is returned when a node gives it again after all heads were read', async () => {
    expect(await reach(['above', 'above', 'on'])).toBe('above')
  })

  it('is not returned when the node had left that branch', async () => {
    expect(await reach(['above', 'on'])).toBe('on')
  })
})
