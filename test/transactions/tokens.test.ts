import { encodeFunctionData, erc20Abi, erc721Abi } from 'viem'
import { afterAll, expect, it } from 'vitest'
import { createSender, encode } from '../chains/evm/token-contracts.ts'
import { freshDatabase } from '../helpers/database.ts'
import { startSendingBench } from './harness.ts'
import { createOwner, refusal } from './owner.ts'

const { db } = await freshDatabase()
const bench = await startSendingBench(db)
afterAll(bench.stop)
const { anvil, caller, accounts, mine, reaches } = bench
const [from, friend] = accounts as [string, string]
const { deploy, send } = createSender(anvil)
const { wallet_id, signed, sendOne } = await createOwner(bench)

it('sends tokens, and says early and clearly what is against it', async () => {
  const coin = await deploy('Coin', friend)
  const item = await deploy('Item', friend)
  await send({ from: friend, to: coin, data: encode('mint', from, 100n) })
  await send({ from: friend, to: item, data: encode('mint', from, 7n) })
  await mine()
  const token = async (kind: 'ERC20' | 'ERC721', token_payload: object, fields: object = {}) =>
    (
      await caller.call('CreateTokenTransaction', {
        wallet_id,
        from,
        to: friend,
        contract_type: `CONTRACT_TYPE_${kind}`,
        token_payload,
        ...fields,
      })
    ).transaction
  const erc20 = (value: string) => token('ERC20', { erc20: { contract_address: coin, value } })
  const erc721 = (token_id: string) =>
    token('ERC721', { erc721: { contract_address: item, token_id } })

  const poor = await refusal(erc20('101'))
  expect([poor.reason, poor.errors[0]]).toEqual([
    'TRANSACTION_WOULD_FAIL',
    {
      field: 'token_payload.erc20.value',
      reason: 'WOULD_FAIL',
      detail: `The balance of ${from} is 100, less than 101.`,
    },
  ])
  expect(poor.message).toMatch(/^The contract reverts: an arithmetic overflow\. The balance/)
  const missing = await refusal(erc721('8'))
  expect(missing.message).toContain('The item 8 does not exist')
  await send({ from: friend, to: item, data: encode('mint', friend, 9n) })
  await mine()
  const theirs = await refusal(erc721('9'))
  expect(theirs.message).toBe(
    `The contract reverts: not yours. ${from} is not the owner of the item 9.`,
  )
  const nothing = await refusal(token('ERC20', { erc20: { contract_address: friend, value: '1' } }))
  expect(nothing.errors).toMatchObject([
    { field: 'token_payload.erc20.contract_address', detail: `${friend} is no ERC-20 contract.` },
  ])
  const both = await refusal(
    token('ERC20', {
      erc20: { contract_address: coin, value: '1' },
      erc721: { contract_address: item, token_id: '7' },
    }),
  )
  expect(both.errors).toMatchObject([{ field: 'token_payload.erc721', reason: 'NOT_ALLOWED' }])
  const none = await refusal(token('ERC721', { erc20: { contract_address: coin, value: '1' } }))
  expect(none.errors.map(({ field }) => field)).toEqual([
    'token_payload.erc20',
    'token_payload.erc721',
  ])

  const [coins, thing] = [await erc20('60'), await erc721('7')]
  expect(coins).toMatchObject({
    to: coin,
    value: '0',
    data: encodeFunctionData({
      abi: erc20Abi,
      functionName: 'transfer',
      args: [friend as `0x${string}`, 60n],
    }),
  })
  expect(thing.data).toBe(
    encodeFunctionData({
      abi: erc721Abi,
      functionName: 'safeTransferFrom',
      args: [from as `0x${string}`, friend as `0x${string}`, 7n],
    }),
  )
  // More than is left once the first one is through: with a gas of his own the user may.
  const late = await token(
    'ERC20',
    { erc20: { contract_address: coin, value: '60' } },
    { gas: '100000' },
  )
  for (const { transaction_id } of [coins, thing, late]) {
    await signed(transaction_id)
    await sendOne(transaction_id)
  }
  await mine(3)
  await reaches(coins.transaction_id, 'CONFIRMED')
  await reaches(thing.transaction_id, 'CONFIRMED')
  await reaches(late.transaction_id, 'REVERTED')
})
