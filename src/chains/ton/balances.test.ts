import { expect, it } from 'vitest'
import { type BalanceQuery, ChainUnavailableError } from '../chain.ts'
import { createFakeClock } from '../evm/testing/fake-clock.ts'
import { createSuspects } from '../suspects.ts'
import { createReadBalances } from './balances.ts'
import { ContractFailedError, type GetMethods } from './get-methods.ts'
import type { TonNodes } from './nodes.ts'

const never = new AbortController().signal
const at = { number: 50, hash: Buffer.alloc(32, 5) }
const [token, other] = [Buffer.alloc(33, 1), Buffer.alloc(33, 2)]

/** The balance of a jetton wallet is its last byte. */
const query = (contract_address: Buffer, number: number): BalanceQuery => ({
  address: Buffer.alloc(33, number),
  asset: { asset_type: 'ASSET_TYPE_T', contract_address, token_id: 0n },
  token_account_address: Buffer.concat([contract_address.subarray(1), Buffer.from([number])]),
})

/** Reads with contracts for which the nodes do as `fails` says of each call. */
const open = (fails: (account: Buffer, atOnce: number) => boolean, { failMs = 0 } = {}) => {
  const clock = createFakeClock()
  const [suspects, unfinished] = [createSuspects(), createSuspects({ blocks: 100 })]
  const asked: number[] = []
  let running = 0
  const mustRun: GetMethods['mustRun'] = async (account) => {
    running++
    asked.push(account.at(-1)!)
    await clock.sleep(1)
    const hasFailed = fails(account, running)
    if (hasFailed) await clock.sleep(failMs)
    running--
    if (hasFailed) throw new ContractFailedError('no node can run it', { isCertain: false })
    return [BigInt(account.at(-1)!)]
  }
  const methods: GetMethods = { run: mustRun as GetMethods['run'], mustRun }
  const nodes = { indexes: async () => [] } as unknown as TonNodes
  const readBalances = createReadBalances({ nodes, methods, clock, suspects, unfinished })
  const read = async (queries: readonly BalanceQuery[]): Promise<(bigint | null)[]> => {
    let isOver = false
    const reading = readBalances(queries, at, never).finally(() => {
      isOver = true
    })
    reading.catch(() => {})
    while (!isOver) await clock.advance(100)
    return (await reading).map(({ balance }) => balance)
  }
  return { read, asked, suspects, unfinished, clock }
}

const numbers = Array.from({ length: 100 }, (_, index) => index)
const all = numbers.map((number) => query(token, number))
const balances = numbers.map(BigInt)

it('one failure that passes makes no balance of the token unreadable', async () => {
  let failures = 1
  const { read, suspects, clock } = open(() => failures-- > 0)
  const begun = clock.now()
  expect(await read(all)).toEqual(balances)
  // The rest is read together again.
  expect(clock.now() - begun).toBeLessThan(1_000)
  expect(suspects.has(token, at.number)).toBe(false)
})

it('what fails only beside others is read alone', async () => {
  const { read, suspects } = open((_, atOnce) => atOnce > 1)
  expect(await read(all)).toEqual(balances)
  expect(suspects.has(token, at.number)).toBe(false)
})

it('what fails alone is unreadable, and nothing else of its token', async () => {
  const isBad = (number: number) => number === 7 || number === 8 || number === 90
  const { read, suspects } = open((account) => account[0] === 1 && isBad(account.at(-1)!))
  const expected = balances.map((balance) => (isBad(Number(balance)) ? null : balance))
  expect(await read([...all, query(other, 7)])).toEqual([...expected, 7n])
  expect(suspects.has(token, at.number)).toBe(true)
  expect(suspects.has(other, at.number)).toBe(false)
})

it('what there was no time to ask for is not unreadable; the next reading, apart, holds up nothing', async () => {
  const { read, asked, unfinished } = open((account) => account[0] === 1, { failMs: 10_000 })
  await expect(read([...all, query(other, 7)])).rejects.toThrow(ChainUnavailableError)
  expect(new Set(asked).size).toBeLessThan(50)
  expect(unfinished.has(token, at.number)).toBe(true)
  expect(unfinished.has(other, at.number)).toBe(false)
  expect(await read([...all, query(other, 7)])).toEqual([...balances.map(() => null), 7n])
})
