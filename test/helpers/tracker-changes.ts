import { randomBytes, randomUUIDv7 } from 'node:crypto'
import type { AssetKey } from '../../src/contract/records/assets.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { findTurn } from '../../src/storage/webhooks/notification-events.ts'
import { accounts, type Dice } from './tracker-growth.ts'
import { own, type ReferenceWebhook, ruleOf } from './tracker-reference.ts'
import type { Caller, WalletBench } from './wallets.ts'

/** What the callers of a world have registered. */
export type Registered = {
  addresses: Map<string, { wallet_id: string; registration: number }>
  contracts: Map<string, number>
  rules: Map<string, number>
  webhooks: ReferenceWebhook[]
}

/** A wallet of a world. */
export type WorldWallet = {
  wallet_id: string
  caller: Caller
  confirmation: number
  /** Work that was noted before the number changed has other times. */
  isChanged?: boolean
  /** Its balances may have been read at a later block than that of the change. */
  wasDeep?: boolean
  /** What had its confirmation before the number changed stays confirmed. */
  confirmed: number
  /** The same for balances: those that a caller imports are read from nodes that may be ahead of the tracker. */
  imported: number
  /** Its history stays. */
  isRemoved?: boolean
}

/** What names a balance. */
export const keyOf = (row: { wallet_id: string; address: Buffer; asset_id: string }): string =>
  `${row.wallet_id}/${row.address.toString('hex')}/${row.asset_id}`

/** Makes random changes of what is tracked, by operations. */
export const createChanges = (
  { chain, network_id, account, address }: WalletBench,
  world: {
    db: Db
    service: WalletService
    callers: Caller[]
    tokens: AssetKey[]
    hasRules: boolean
    now: Registered
    wallets: WorldWallet[]
    /** The head at which a refresh found a balance that was not known before. */
    first: Map<string, number>
    nextRegistration(): Promise<number>
    /** Runs the tracker until nothing is left to do. */
    run(): Promise<void>
  },
  { pick, chance }: Dice,
): (() => Promise<void>) => {
  const { db, service, callers, tokens, hasRules, now, wallets, first, nextRegistration, run } =
    world
  // Some ask for so many that they are read before they have them.
  const pickConfirmation = () => (chance(0.2) ? 33 + pick(4) : pick(7))
  const listKeys = async (wallet_id: string) =>
    (
      await db
        .selectFrom('balance')
        .select(['wallet_id', 'address', 'asset_id'])
        .where('wallet_id', '=', wallet_id)
        .execute()
    ).map(keyOf)
  /** Tracks a token for a wallet or the organization, or no longer. */
  const changeRule = async (caller: Caller, wallet: string | undefined): Promise<void> => {
    const { organization_id } = caller
    const token = tokens[pick(tokens.length)]!
    const wallet_id = wallet !== undefined && chance(0.6) ? wallet : ''
    const rule = ruleOf(organization_id, wallet_id, token)
    const request = {
      ...(wallet_id && { wallet_id }),
      asset_type: token.asset_type,
      token_address: chain.formatToken!(token.contract_address),
    }
    if (!now.rules.has(rule)) {
      await caller.call('ImportAsset', request)
      now.rules.set(rule, await nextRegistration())
    } else if (chance(0.4)) {
      await caller.call('RemoveAsset', request)
      now.rules.delete(rule)
    }
  }

  return async () => {
    const caller = callers[pick(2)]!
    const { organization_id } = caller
    const mine = wallets.filter((wallet) => wallet.caller === caller && !wallet.isRemoved)
    const wallet = mine[pick(mine.length)]
    const who = pick(accounts)
    const key = own(organization_id, account(who))
    const holder = now.addresses.get(key)
    const hasConfirmation = service === 'c' || service === 's'
    switch (pick(9)) {
      case 0: {
        if (mine.length >= 3) return
        const confirmation = hasConfirmation ? pickConfirmation() : 1
        const { wallet_id } = await caller.call('RegisterWallet', {
          name: 'w',
          ...(hasConfirmation && { confirmation }),
        })
        wallets.push({ wallet_id, caller, confirmation, confirmed: -1, imported: -1 })
        return
      }
      case 1:
      case 2: {
        if (!wallet || holder) return
        const { wallet_id } = wallet
        await caller.call('RegisterAddress', {
          wallet_id,
          address: address(who),
          ...(service !== 'c' && { import_asset: chance(0.5) }),
        })
        now.addresses.set(key, { wallet_id, registration: await nextRegistration() })
        return
      }
      case 3: {
        if (!holder || chance(0.5)) return
        await caller.call('RemoveAddress', { wallet_id: holder.wallet_id, address: address(who) })
        now.addresses.delete(key)
        return
      }
      case 4: {
        if (!wallet) return
        const asset_type =
          chance(0.5) || service !== 'c' ? chain.native.asset_type : 'ASSET_TYPE_ERC20'
        const { wallet_id } = wallet
        const before = new Set(await listKeys(wallet_id))
        await caller.call('RefreshAssetBalances', { wallet_id, asset_type })
        const head = (await findCursor(db, network_id))?.block_number ?? 0
        for (const key of await listKeys(wallet_id)) if (!before.has(key)) first.set(key, head)
        return
      }
      case 5: {
        if (hasRules) return await changeRule(caller, wallet?.wallet_id)
        if (service !== 'c') return
        const { contract_address, asset_type } = tokens[pick(tokens.length)]!
        const request = { contract_address: chain.formatAddress(contract_address) }
        const contract = own(organization_id, contract_address)
        if (now.contracts.has(contract)) {
          if (chance(0.6)) return
          await caller.call('RemoveContract', request)
          now.contracts.delete(contract)
          return
        }
        const contract_type = asset_type.replace('ASSET_', 'CONTRACT_')
        await caller.call('RegisterContract', { ...request, contract_type })
        now.contracts.set(contract, await nextRegistration())
        return
      }
      case 6: {
        if (!wallet || chance(0.8)) return
        const { wallet_id } = wallet
        await caller.call('RemoveWallet', { wallet_id })
        wallet.isRemoved = true
        for (const [owned, { wallet_id: of }] of now.addresses)
          if (of === wallet_id) now.addresses.delete(owned)
        for (const rule of now.rules.keys())
          if (rule.split('/')[1] === wallet_id) now.rules.delete(rule)
        now.webhooks = now.webhooks.filter((webhook) => webhook.wallet_id !== wallet_id)
        return
      }
      case 7: {
        const own = now.webhooks.filter((webhook) => webhook.organization_id === organization_id)
        const webhook = own[pick(own.length)]
        if (!webhook) return
        const { webhook_id } = webhook
        if (service === 'c' && chance(0.5)) {
          // What was seen before is still sent, and so is what takes it back.
          webhook.isSilent = !webhook.isSilent
          const kind = webhook.isSilent ? 'TRANSACTION_STATE' : 'TRANSFER'
          await caller.call('UpdateWebhook', { webhook_id, events: [`WEBHOOK_EVENT_${kind}`] })
          return
        }
        // What waits for its confirmation waits for the new number; what had it must be sent before.
        await run()
        webhook.confirmation = pick(5)
        await caller.call('UpdateWebhook', { webhook_id, confirmation: webhook.confirmation })
        return
      }
      default: {
        if (wallet && hasConfirmation && chance(0.3)) {
          const head = (await findCursor(db, network_id))?.block_number ?? 0
          const { wallet_id } = wallet
          const confirmation = pickConfirmation()
          await caller.call('UpdateConfirmation', { wallet_id, confirmation })
          const reached = head - Math.max(wallet.confirmation, 1) + 1
          wallet.confirmed = Math.max(wallet.confirmed, reached)
          // Behind after a return to a shorter branch: what was read of the longer one stays until it is taken back.
          const ahead = Math.max(0, chain.canonical().length - 1 - head)
          wallet.imported = Math.max(wallet.imported, reached + ahead)
          wallet.wasDeep ||= wallet.confirmation > 32
          wallet.confirmation = confirmation
          wallet.isChanged = true
        } else if (now.webhooks.length < 4) {
          const webhook = {
            webhook_id: randomUUIDv7(),
            organization_id,
            wallet_id: chance(0.5) ? (wallet?.wallet_id ?? null) : null,
            confirmation: pick(5),
            isSilent: false,
          }
          const { isSilent: _, ...row } = webhook
          // As RegisterWebhook does: events of earlier blocks may not be expanded yet.
          const { next_event } = await findTurn(db, { organization_id, network_id })
          await db
            .insertInto('webhook')
            .values({
              ...row,
              network_id,
              first_event: next_event,
              webhook_endpoint: 'https://example.org',
              webhook_state: 'WEBHOOK_STATE_ENABLED',
              secret_sealed: randomBytes(4),
              next_sequence: 1,
              create_time: new Date(),
              update_time: new Date(),
            })
            .execute()
          now.webhooks.push(webhook)
        }
      }
    }
  }
}
