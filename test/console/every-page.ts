import { join } from 'node:path'
import { expect, test } from 'vitest'
import { audit, auditColours, axeSource } from './browser.ts'
import type { World } from './world.ts'

/** A folder for pictures of every page, for people to look at. */
const shots = process.env.CONSOLE_SHOTS

/** Every page in both themes and two sizes: axe, width, policy, errors and other origins. */
export function testEveryPage(world: World): void {
  const {
    service,
    base_url,
    admin,
    demo,
    wallet_id,
    webhook_id,
    webhook_history_id,
    deposit,
    transaction,
    open,
    signIn,
    visit,
    clean,
  } = world

  const pages: Readonly<Record<string, string>> = {
    overview: '',
    wallets: 'wallets/c',
    wallet: `wallets/c/${demo.wallet_id}`,
    balances: `wallets/c/${demo.wallet_id}/balances`,
    addresses: `wallets/c/${demo.wallet_id}/addresses`,
    'attacking-wallet': `wallets/c/${wallet_id}`,
    transfer: `transfers/c/${deposit}`,
    webhooks: 'webhooks/c',
    webhook: `webhooks/c/${webhook_id}`,
    headers: `webhooks/c/${webhook_id}/headers`,
    receiver: `webhooks/c/${webhook_id}/receiver`,
    delivery: `webhooks/c/${webhook_id}/deliveries/${webhook_history_id}`,
    transactions: 'transactions/c',
    transaction: `transactions/c/${transaction.transaction_id}`,
    playground: 'playground/c/RegisterWebhook',
    gateway: 'gateway',
    methods: 'gateway/methods',
    clients: 'gateway/clients',
    nodes: 'gateway/nodes',
    local: 'local',
    organizations: 'organizations',
    organization: `organizations/${service.connection.organization_id}`,
    keys: 'keys',
    usage: 'usage',
    audit: 'audit',
    missing: 'no-such-page',
    documents: 'docs',
    guide: 'docs/guide/webhooks',
    reference: 'docs/api/c/RegisterWebhook',
  }

  const sizes = [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]
  const themes = ['light', 'dark'] as const
  /** Loads every page once, and looks at it in both themes and sizes: loading costs most. */
  const inspectAll = async () => {
    const violations: Record<string, string[]> = Object.fromEntries(
      themes.flatMap((theme) => sizes.map(({ width }) => [`${theme} ${width}`, []])),
    )
    const watched = await open('light', 1440, 900)
    const { page } = watched
    const inspect = async (name: string, hasAxe: boolean) => {
      for (const size of sizes) {
        await page.setViewportSize(size)
        for (const colorScheme of themes) {
          await page.emulateMedia({ colorScheme })
          const found: string[] = []
          if (shots !== undefined)
            await page.screenshot({
              path: join(shots, `${colorScheme}-${size.width}`, `${name}.png`),
            })
          // Charts take a new width in a later frame.
          const fits = () => document.documentElement.scrollWidth <= window.innerWidth
          await page
            .waitForFunction(fits, undefined, { timeout: 5_000 })
            .catch(() => found.push(`${name}: wider than the screen`))
          // The structure is the same in both themes.
          const isFirst = colorScheme === themes[0]
          if (hasAxe)
            found.push(...(isFirst ? await audit(page, name) : await auditColours(page, name)))
          violations[`${colorScheme} ${size.width}`]?.push(...found)
        }
      }
    }
    await page.goto(base_url)
    await page.getByLabel('api_key').waitFor()
    await inspect('sign-in', false)
    await signIn(watched, admin)
    await page.evaluate(axeSource)
    for (const [name, path] of Object.entries(pages)) {
      await visit(page, path)
      await inspect(name, true)
    }
    return {
      violations,
      clean: clean(watched),
      attacked: await page.evaluate(() => 'attacked' in window),
    }
  }
  let inspected: ReturnType<typeof inspectAll> | undefined

  test.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
    ['dark', 390],
  ] as const)('every page in %s at %i px', async (scheme, width) => {
    inspected ??= inspectAll()
    const { violations, ...others } = await inspected
    expect(violations[`${scheme} ${width}`]).toEqual([])
    expect(others).toEqual({ clean: { errors: [], others: [] }, attacked: false })
  })
}
