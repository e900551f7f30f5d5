import { randomUUID } from 'node:crypto'
import { findOperation } from '../../src/contract/catalogue.ts'
import type { Service } from '../../src/contract/variant.ts'
import type { Tenant, TestApp } from '../helpers/app.ts'
import { type Body, validRequest } from './sample-requests.ts'

/** Values that name things of one organization, by the field that takes them. */
export type Belongings = Record<string, string>

/** How many different addresses were made up. */
let addresses = 0

/** An address that every wallet variant takes. */
const newAddress = () => `0x${(++addresses).toString(16).padStart(40, 'a')}`

const newHash = () => `0x${randomUUID().replaceAll('-', '').repeat(2)}`

/** Values of the right form that name nothing. */
export const unknownBelongings = (): Belongings => {
  const address = newAddress()
  return {
    organization_id: randomUUID(),
    domain: `nobody-${randomUUID().slice(0, 8)}`,
    api_key: `plk_${randomUUID()}`,
    api_secret: `pls_${randomUUID()}`,
    wallet_id: randomUUID(),
    webhook_id: randomUUID(),
    webhook_header_id: randomUUID(),
    webhook_history_id: randomUUID(),
    transaction_id: randomUUID(),
    transaction_hash: newHash(),
    transaction_digest: newHash(),
    address,
    from: address,
    contract_address: newAddress(),
  }
}

/**
 * Makes one thing of each kind for a tenant, as far as the operations are built, and answers what
 * names them. The rest stays unknown until its operation comes.
 */
export const makeBelongings = async (
  app: TestApp,
  tenant: Tenant,
  service: Service,
): Promise<Belongings> => {
  const { organization_id, domain, member } = tenant
  const things: Belongings = { ...unknownBelongings(), organization_id, domain, ...member }
  const make = async (operation: string, fields: Body, take: string) => {
    const entry = findOperation(service, operation)
    if (!entry) return
    const known = Object.keys(entry.row.request)
    const given = Object.fromEntries(
      Object.entries(fields).filter(([name]) => known.includes(name)),
    )
    const { status, json } = await app.call(member, `${service}/${operation}`, {
      ...validRequest(entry),
      ...given,
    })
    // Not built yet, or of a chain that this service does not have.
    if (status === 501 || json.reason === 'CHAIN_NOT_CONFIGURED') return
    if (status !== 200) throw new Error(`${service}/${operation}: ${JSON.stringify(json)}`)
    const answer = { ...json, ...json.transaction }
    things[take] = answer[take]
  }
  const address = things.address
  await make('RegisterWallet', { name: 'theirs', address }, 'wallet_id')
  const { wallet_id } = things
  const webhook_endpoint = 'https://example.org/hook'
  await make('RegisterWebhook', { wallet_id, webhook_endpoint }, 'webhook_id')
  const { webhook_id } = things
  await make('RegisterWebhookHeader', { webhook_id }, 'webhook_header_id')
  await make('SendTestWebhook', { webhook_id }, 'webhook_history_id')
  await make('CreateTransaction', { wallet_id, from: address }, 'transaction_id')
  return things
}
