import { getAddress } from 'viem'
import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import type { World } from './world.ts'

/** Wallets, transfers and the deliveries about them, as they happen. */
export function testWallets(world: World): void {
  const {
    service,
    base_url,
    client,
    member,
    admin,
    receiver,
    limit,
    address,
    demo,
    webhook_id,
    webhook_history_id,
    post,
    fund,
    open,
    signIn,
    visit,
    clean,
  } = world

  test('a deposit appears while the page is open, and a failing receiver is fixed and retried', async () => {
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await signIn(watched, member)
    // A member has no page of organizations, and no button to create keys.
    expect(await page.getByRole('link', { name: 'Organizations' }).count()).toBe(0)
    await visit(page, `wallets/c/${demo.wallet_id}`)
    await page.locator('.live[data-state=open]').waitFor()
    const hash = await fund(address)
    await page.locator(`tr:has([title="${hash}"])`).first().waitFor({ timeout: 60_000 })

    await visit(page, `webhooks/c/${webhook_id}/deliveries/${webhook_history_id}`)
    await page.getByText('HTTP 500').first().waitFor()
    // The headers of both sides are there, and the value of a custom one is not.
    const headers = (await page.locator('.headers').allTextContents()).join()
    expect(headers).toMatch(/x-note•+.*webhook-signaturev1,.*content-typetext\/html.*x-reason<img/)
    expect(await page.locator('main img').count()).toBe(0)
    receiver.fix()
    await page.getByRole('button', { name: 'Deliver again' }).click()
    await page.getByText('HTTP 204').first().waitFor({ timeout: 60_000 })

    // The search goes to it, and the key `/` to the search.
    await page.locator('main').focus()
    await page.keyboard.press('/')
    await page.keyboard.type(hash)
    // Before the results are there.
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Transfer' }).waitFor()
    // A result that is chosen by keyboard is gone on its page: the next key continues there.
    await page.locator('main').focus()
    await page.keyboard.press('/')
    await page.keyboard.type(address)
    await page.locator('.search-results a').first().waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.activeElement?.tagName === 'MAIN')
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('an address with a checksum is found, and gets coin of the faucet', async () => {
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await signIn(watched, admin)
    const checksum = getAddress(address)
    const letter = /[a-f]/i.exec(checksum.slice(2))![0]
    const other = letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase()
    const wrong = `0x${checksum.slice(2).replace(letter, other)}`
    const box = page.getByLabel('Search addresses, transactions, wallets and webhooks')
    await box.fill(checksum)
    await page.locator('.search-results a').first().waitFor()
    await box.fill(wrong)
    await page.locator('.search-results').getByText('checksum').waitFor()

    await visit(page, 'local')
    await page.getByLabel('Chain', { exact: true }).selectOption('c')
    const field = page.locator('#faucet-address')
    await waitFor(
      'the address of a wallet is suggested',
      async () => (await field.inputValue()) !== '',
    )
    await field.fill(wrong)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('The checksum of this address').waitFor()
    await field.fill(checksum)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Sent:').waitFor({ timeout: 60_000 })
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a reorganization takes a transfer back while the page is open', async () => {
    const watched = await open('light', 390, 844)
    const { page } = watched
    await signIn(watched, admin)
    await visit(page, `wallets/c/${demo.wallet_id}`)
    await page.locator('.live[data-state=open]').waitFor()
    const hash = await fund(address)
    const row = page.locator(`tr:has([title="${hash}"])`).first()
    await row.waitFor()
    const { transfers } = await client.c.ListTransfers({ transaction_hash: hash })
    const { chains } = await client.admin.ListChains({})
    const head = Number(chains.find(({ chain }) => chain === 'c')?.block_number)
    await post('reorg', { depth: head - Number(transfers[0]?.block_number) + 2 })
    await row.getByText('Reorged').waitFor()
    // It stays in the list of what has happened, for administrators.
    await visit(page, 'local')
    await page.getByLabel('Blocks').fill('2')
    // On a busy machine the blocks may be replaced before they were tracked: that is no reorganization.
    await waitFor(
      'the reorganization is shown',
      async () => {
        await page.getByRole('button', { name: 'Reorganize' }).click()
        return (await page.locator('.timeline .badge', { hasText: 'reorganization' }).count()) > 0
      },
      { ...limit, everyMs: 2_000 },
    )
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a token is tracked, and a filter that is refused leaves no rows of the one before', async () => {
    const { page } = await open('light', 1440, 900)
    await signIn({ page, errors: [], requests: [] }, member)
    await visit(page, `wallets/c/${demo.wallet_id}`)
    await page.getByRole('button', { name: 'Track a token' }).click()
    const contract = page.getByLabel(/^contract_address\b/)
    await contract.fill(`0x${'11'.repeat(20)}`)
    await page.getByLabel(/^contract_type\b/).selectOption('CONTRACT_TYPE_ERC20')
    const track = page.getByRole('dialog').getByRole('button', { name: 'Track' })
    await track.click()
    await page.locator('.field-error', { hasText: 'There is no contract' }).waitFor()
    const { erc20 } = service.connection.chains.c!.contracts!
    await contract.fill(erc20!)
    await track.click()
    // The page goes to where the result is.
    const tokens = page.getByRole('region', { name: 'Tracked tokens' })
    await tokens.locator(`[title="${erc20}"]`).waitFor()

    await visit(page, `wallets/c/${demo.wallet_id}`)
    const rows = page.locator('main tbody tr')
    await rows.first().waitFor()
    await page.getByLabel('Address', { exact: true }).fill('0x12')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('INVALID_REQUEST').waitFor()
    expect(await rows.count()).toBe(0)
    await page.getByLabel('Address', { exact: true }).fill('')
    await page.keyboard.press('Enter')
    await rows.first().waitFor()
  })

  test('a search of the documentation is sent before its words are loaded', async () => {
    const { page } = await open('light', 1440, 900)
    await page.goto(`${base_url}/docs`)
    await page.getByRole('searchbox').fill('how to receive')
    await page.keyboard.press('Enter')
    await page.waitForURL(/docs\/guide\//)
  })
}
