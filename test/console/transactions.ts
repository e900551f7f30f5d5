import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import type { Watched } from './browser.ts'
import { sender, type World } from './world.ts'

/** Managed transactions, signed by a wallet of the browser. */
export function testTransactions(world: World): void {
  const {
    base_url,
    post,
    client,
    member,
    limit,
    address,
    demo,
    transaction,
    fund,
    open,
    signIn,
    visit,
    clean,
  } = world

  test('a transaction is created, signed by a wallet of the browser, sent and confirmed', async () => {
    const watched = await open('dark', 1440, 900)
    const { page } = watched
    await injectWallet(watched)
    await client.c.CancelTransaction({ transaction_id: transaction.transaction_id })
    await signIn(watched, member)
    await visit(page, `transactions/c?wallet=${demo.wallet_id}`)
    await page.getByRole('button', { name: 'Send coin' }).click()
    await page.getByLabel(/^to\b/).fill(`0x${'cd'.repeat(20)}`)
    await page.getByLabel(/^value\b/).fill('x')
    await page.getByRole('button', { name: 'Create' }).click()
    // The complaint stands at its field.
    await page.locator('.field[data-bad] .field-error').first().waitFor()
    await page.getByLabel(/^value\b/).fill('12345')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'Sign with the wallet' }).click()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const state = page.locator('.machine-state[data-current=true] text')
    // Further transactions make blocks.
    await waitFor(
      'the transaction is confirmed',
      async () => {
        await fund(address)
        return /CONFIRMED/.test((await state.textContent()) ?? '')
      },
      limit,
    )
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a transaction that waits is replaced by a faster one', async () => {
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await injectWallet(watched)
    await signIn(watched, member)
    await visit(page, `transactions/c?wallet=${demo.wallet_id}`)
    const nonce = Number(await rpc('eth_getTransactionCount', [address, 'latest']))
    await page.getByRole('button', { name: 'Send coin' }).click()
    // Every default is explained at its field.
    await page.getByText("left out: the node's estimate").waitFor()
    await page.getByLabel(/^to\b/).fill(`0x${'ce'.repeat(20)}`)
    await page.getByLabel(/^value\b/).fill('7')
    // A gap in the nonces: no block takes it.
    await page.getByLabel(/^nonce\b/).fill(`${nonce + 1}`)
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText(`No block takes nonce ${nonce + 1} before nonce ${nonce}`).waitFor()
    const send = async () => {
      await page.getByRole('button', { name: 'Sign with the wallet' }).click()
      await page.getByRole('button', { name: 'Send', exact: true }).click()
      await page.getByRole('button', { name: 'Speed up' }).waitFor()
    }
    await send()
    const first = page.url()
    await page.getByRole('button', { name: 'Speed up' }).click()
    await page.getByRole('button', { name: 'Create the replacement' }).click()
    await page.waitForURL((url) => url.href !== first)
    await send()
    await rpc('eth_sendTransaction', [
      { from: address, to: address, value: '0x1', nonce: `0x${nonce.toString(16)}` },
    ])
    await post('mine', { chain: 'c', blocks: 12 })
    await visit(page, first.slice(base_url.length + 1))
    await page.locator('.machine-state[data-current=true]', { hasText: 'REPLACED' }).waitFor()
    await page.getByText('Replaced by').waitFor()
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  const rpc = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const answer = await fetch(world.service.connection.chains.c!.node_url!, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(20_000),
    })
    return ((await answer.json()) as { result: unknown }).result
  }
}

/** A wallet of the browser (EIP-1193) that signs with the key of the demo wallet. */
async function injectWallet({ page }: Watched): Promise<void> {
  await page.exposeFunction('signForTest', (fields: Record<string, `0x${string}`>) =>
    sender.signTransaction({
      type: 'legacy',
      chainId: 31_337,
      to: fields.to!,
      nonce: Number(fields.nonce),
      value: BigInt(fields.value!),
      gas: BigInt(fields.gas!),
      gasPrice: BigInt(fields.gasPrice!),
      data: fields.data!,
    }),
  )
  await page.addInitScript((account) => {
    const sign = (fields: unknown) =>
      (window as unknown as { signForTest(fields: unknown): unknown }).signForTest(fields)
    Object.assign(window, {
      ethereum: {
        request: async ({ method, params }: { method: string; params?: unknown[] }) =>
          method === 'eth_requestAccounts' ? [account] : sign(params?.[0]),
      },
    })
  }, sender.address)
}
