import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ChainBlock } from '../../chain.ts'
import { createFindNonceUse } from './nonce-use.ts'

const never = new AbortController().signal
const from = Buffer.alloc(20, 7)

/** A chain on which the address has sent that many transactions in each block. */
const chainOf = (counts: readonly number[]) => {
  const first = counts.map((_, at) => counts.slice(0, at).reduce((sum, count) => sum + count, 0))
  let asked = 0
  const find = createFindNonceUse({
    countAt: async (_, number) => {
      asked++
      return first[number]! + counts[number]!
    },
    fetchBlock: async (number) =>
      ({
        number,
        hash: Buffer.from([number]),
        sent: Array.from({ length: counts[number]! }, (_, at) => ({
          from,
          nonce: first[number]! + at,
          failed: false,
          hash: () => Buffer.from([number, at]),
        })),
      }) as unknown as ChainBlock,
  })
  return { find, first, asked: () => asked }
}

it('finds the block and the transaction of every nonce, and nothing for a free one', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 100 }),
      fc.nat({ max: 300 }),
      fc.option(fc.nat({ max: 99 }), { nil: undefined }),
      async (counts, nonce, hint) => {
        const { find, first, asked } = chainOf(counts)
        const upTo = counts.length - 1
        const found = await find({ from, nonce, upTo, hint }, never)
        const number = counts.findIndex((count, at) => first[at]! + count > nonce)
        if (number === -1) expect(found).toBeUndefined()
        else
          expect(found).toEqual({
            hash: Buffer.from([number, nonce - first[number]!]),
            block: { number, hash: Buffer.from([number]) },
            failed: false,
          })
        expect(asked()).toBeLessThan(20)
      },
    ),
    { numRuns: 200 },
  )
})
