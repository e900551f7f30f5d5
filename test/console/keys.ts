import { expect, test } from 'vitest'
import type { World } from './world.ts'

/** Signing in, what a key may do, and what becomes of it. */
export function testKeys(world: World): void {
  const { service, base_url, client, admin, member, demo, open, signIn, visit, clean } = world

  test('a remembered key survives a reload, and the gateway answers', async () => {
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await signIn(watched, admin, true)
    await page.goto(`${base_url}/gateway`)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('"result": "0x').waitFor()
    // The history stays while other pages are visited.
    await page.getByRole('link', { name: 'Methods', exact: true }).click()
    await page.getByRole('link', { name: 'Playground', exact: true }).click()
    await page.getByText('"result": "0x').waitFor()
    await page.getByLabel('Method').selectOption('eth_subscribe')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'Subscription' }).waitFor()
    const { websocket_clients } = await client.admin.ListWebSocketClients({})
    expect(websocket_clients.map(({ subscriptions }) => subscriptions)).toContainEqual([
      { name: 'newHeads', subscription_count: 1 },
    ])
    // A dialog of a panel stands in the middle of the screen, not in the panel.
    await visit(page, 'keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel(/^scopes\b/).waitFor()
    const box = await page.locator('dialog[open]').boundingBox()
    expect(Math.abs((box?.x ?? 0) + (box?.width ?? 0) / 2 - 720)).toBeLessThan(10)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Sign out' }).click()
    // The next session in this tab sees nothing of the last one.
    await page.getByLabel('api_key').fill(member.api_key)
    await page.getByLabel('api_secret').fill(member.api_secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await visit(page, 'gateway')
    await page.getByText('Nothing was sent yet.').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('api_key').waitFor()
    await page.reload()
    await page.getByLabel('api_key').waitFor()
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })

  test('a key that is revoked or narrow sees what it may do, and the page says why it ended', async () => {
    const { credential } = await client.admin.CreateCredential({
      ...{ organization_id: service.connection.organization_id!, name: 'narrow' },
      ...{ role: 'ROLE_MEMBER', scopes: ['*:read'] },
    })
    const { page } = await open('light', 390, 844)
    await signIn({ page, errors: [], requests: [] }, credential, true)
    await visit(page, `wallets/c/${demo.wallet_id}/addresses`)
    expect(await page.getByRole('button', { name: /Add|Remove|Rename/ }).count()).toBe(0)
    for (const path of ['keys', 'organizations', 'gateway/nodes', 'playground/c/RegisterWallet']) {
      await visit(page, path)
      await page.getByText('Your key may not use this.').waitFor()
    }
    await client.admin.RevokeCredential({ credential_id: credential.credential_id })
    await page.getByLabel('api_key').waitFor()
    await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor()
    // The key is not kept for the next load.
    await page.reload()
    await page.getByLabel('api_key').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  test('a key is changed: name, scopes, networks and expiry', async () => {
    const { credential } = await client.admin.CreateCredential({
      ...{ organization_id: service.connection.organization_id!, name: 'to edit' },
      ...{ role: 'ROLE_MEMBER' },
    })
    const watched = await open('light', 1440, 900)
    const { page } = watched
    await signIn(watched, admin)
    await visit(page, 'keys')
    await page.locator('tr', { hasText: 'to edit' }).getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel(/^name\b/).fill('edited')
    await page.getByLabel(/^scopes\b/).fill('c:read\ngateway:c')
    await page.getByLabel(/^allowed_client_networks\b/).fill('192.0.2.0/24')
    await page.getByLabel(/^expire_time\b/).fill('2999-01-31T00:00:00Z')
    const save = page.getByRole('button', { name: 'Save' })
    await save.click()
    const row = page.locator('tr', { hasText: 'edited' })
    await row.getByText('192.0.2.0/24').waitFor()
    const { organization_id } = credential
    const stored = async () =>
      (await client.admin.ListCredentials({ organization_id, page_size: 100 })).credentials.find(
        ({ credential_id }) => credential_id === credential.credential_id,
      )
    const changed = {
      name: 'edited',
      scopes: ['c:read', 'gateway:c'],
      allowed_client_networks: ['192.0.2.0/24'],
    }
    expect(await stored()).toMatchObject({ ...changed, expire_time: '2999-01-31T00:00:00.000Z' })
    // The form begins with the key as it is, so that one change leaves the others.
    await row.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('remove_expire_time').check()
    await save.click()
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await stored()).toMatchObject({ ...changed, expire_time: null })
    expect(clean(watched)).toEqual({ errors: [], others: [] })
  })
}
