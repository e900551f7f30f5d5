import { randomBytes, randomUUID } from 'node:crypto'
import { families } from '../../src/chains/registry.ts'
import { findOperation } from '../../src/contract/operations/catalogue.ts'
import type { Service, WalletService } from '../../src/contract/variant.ts'
import type { Tenant, TestApp } from '../helpers/app.ts'
import type { ScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'
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
    domain: `unknown-${randomUUID().slice(0, 8)}`,
    api_key: `plk_${randomUUID()}`,
    api_secret: `pls_${randomUUID()}`,
    wallet_id: randomUUID(),
    webhook_id: randomUUID(),
    webhook_header_id: randomUUID(),
    webhook_history_id: randomUUID(),
    transaction_id: randomUUID(),
    transaction_hash: newHash(),
    transaction_digest: families.s().formatTransactionHash(randomBytes(32)),
    address,
    from: address,
    contract_address: newAddress(),
  }
}

/** Puts the contract onto the chain, so that a registration says nothing of who has it already. */
export const deploy = (chains: ScriptedChains, { contract_address }: Belongings): void => {
  const parsed = chains.c.parseAddress(contract_address!)
  if (parsed.ok) chains.c.addToken(parsed.bytes, 'CONTRACT_TYPE_ERC20')
}

/**
 * Makes one thing of each kind for a tenant, as far as the operations are built, and answers what
 * names them. The rest stays unknown until its operation comes.
 */
export const makeBelongings = async (
  app: TestApp,
  tenant: Tenant,
  service: Service,
  chains: ScriptedChains,
): Promise<Belongings> => {
  const { organization_id, domain, member } = tenant
  const things: Belongings = { ...unknownBelongings(), organization_id, domain, ...member }
  const call = async (operation: string, fields: Body) => {
    const { status, json } = await app.call(member, `${service}/${operation}`, fields)
    // Not built yet.
    if (status === 501) return undefined
    if (status !== 200) throw new Error(`${service}/${operation}: ${JSON.stringify(json)}`)
    return { ...json, ...json.transaction }
  }
  const make = async (operation: string, fields: Body, take?: string) => {
    const entry = findOperation(service, operation)
    if (!entry) return
    const known = Object.keys(entry.row.request)
    const given = Object.fromEntries(
      Object.entries(fields).filter(([name]) => known.includes(name)),
    )
    const answer = await call(operation, { ...validRequest(entry), ...given })
    if (answer && take) things[take] = answer[take]
  }
  const { address, contract_address } = things
  deploy(chains, things)
  await make('RegisterContract', { contract_address, contract_type: 'CONTRACT_TYPE_ERC20' })
  await make('RegisterWallet', { name: 'theirs', address }, 'wallet_id')
  const { wallet_id } = things
  const webhook_endpoint = 'https://receiver.invalid/hook'
  await make('RegisterWebhook', { wallet_id, webhook_endpoint }, 'webhook_id')
  const { webhook_id } = things
  await make('RegisterWebhookHeader', { webhook_id }, 'webhook_header_id')
  await make('SendTestWebhook', { webhook_id }, 'webhook_history_id')
  await make('CreateTransaction', { wallet_id, from: address }, 'transaction_id')
  if (service in chains) await receive(service as WalletService)
  return things

  /** Lets the address get something, and waits until it is listed. */
  async function receive(tag: WalletService): Promise<void> {
    const chain = chains[tag]
    const to = bytesOf(address!)
    const token = {
      asset_type: 'ASSET_TYPE_ERC20' as const,
      contract_address: bytesOf(contract_address!),
      token_id: 0n,
    }
    const movements = [{ to, value: 5n }, ...(tag === 'c' ? [{ to, value: 7n, asset: token }] : [])]
    chain.mine([{ movements }])
    // Enough blocks for every confirmation.
    for (let left = 0; left < 10; left++) chain.mine()
    const { asset_type } = chain.native
    await waitFor(`transfers and balances of ${service}`, async () => {
      const { assets } = (await call('ListAssets', { wallet_id, asset_type }))!
      const { transfers } = (await call('ListTransfers', { wallet_id }))!
      if (assets.length === 0 || transfers.length < movements.length) return false
      const name = tag === 's' ? 'transaction_digest' : 'transaction_hash'
      things[name] = transfers[0][name]
      return true
    })

    function bytesOf(text: string): Buffer {
      const parsed = chain.parseAddress(text)
      if (!parsed.ok) throw new Error(parsed.detail)
      return parsed.bytes
    }
  }
}
