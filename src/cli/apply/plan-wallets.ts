import type { Family } from '../../chains/chain.ts'
import { families } from '../../chains/registry.ts'
import { maxBatchAddresses } from '../../contract/limits.ts'
import { everyPage } from '../local.ts'
import { type ChainHere, canonical } from './chain-place.ts'
import type { ChainPart } from './document.ts'
import type { PlannedPart, PlanTools, ReadChain } from './plan-tools.ts'
import { field, fromTo, type Ref, type Step, someOf } from './step.ts'

type WalletPart = NonNullable<ChainPart['wallets']>[number]
type StoredWallet = { wallet_id: string; name: string; confirmation: number; addresses: string[] }

/** Plans the wallets of a chain and their addresses; gives the wallets by name, for webhooks. */
export async function planWallets(
  { wallets }: ChainPart,
  here: ChainHere,
  tools: PlanTools,
): Promise<PlannedPart & { wallets: Map<string, Ref> }> {
  const { at, organization, domain } = here
  const stored = await listStored(here, tools, new Set(wallets?.map(({ name }) => name)))
  const byName = new Map<string, Ref>(
    stored.map(({ name, wallet_id }) => [name, { id: wallet_id }]),
  )
  const planned = { steps: [] as Step[], extras: [] as string[], wallets: byName }
  if (!wallets) return planned
  // Collected apart: they run before the additions (see the end of this function).
  const removals: Step[] = []
  const names = new Set<string>()
  // Over all wallets of the chain: an address belongs to one wallet.
  const owned = new Set<string>()
  for (const [index, wallet] of wallets.entries()) {
    const path = [...here.path, 'wallets', index]
    const { name } = wallet
    if (names.has(name)) tools.refuse([...path, 'name'], 'is the name of two wallets.')
    names.add(name)
    if (wallet.confirmation !== undefined && here.service !== 's' && here.service !== 'c')
      tools.refuse([...path, 'confirmation'], 'has no meaning on this chain: its blocks are final.')
    const same = stored.filter((one) => one.name === name)
    if (same.length > 1) {
      tools.refuse(
        [...path, 'name'],
        `is the name of ${same.length} wallets that exist. Rename one of them.`,
      )
      continue
    }
    const before = same[0]
    // Filled when the wallet is created, for the steps of its addresses and webhooks.
    const ref: Ref = before ? { id: before.wallet_id } : {}
    byName.set(name, ref)
    if (before) planned.steps.push(...confirmationChange(wallet, before, { ...here, path }))
    else planned.steps.push(creationOf(wallet, ref, { ...here, path }))
    if (!wallet.addresses) continue
    // Compared in canonical form, so that another spelling of an address changes nothing.
    const wanted = new Set<string>()
    const family = families[here.service]()
    for (const [place, text] of wallet.addresses.entries()) {
      const spot = [...path, 'addresses', place]
      const address = canonical({ service: here.service, path: spot }, text, tools, family)
      if (address === undefined) continue
      if (owned.has(address)) tools.refuse(spot, 'is in the document twice.')
      owned.add(address)
      wanted.add(address)
    }
    const had = new Map(before?.addresses.map((text) => [sameForm(text, family), text]))
    const added = [...wanted].filter((address) => !had.has(address))
    const gone = [...had].flatMap(([address, text]) => (wanted.has(address) ? [] : [text]))
    const where = { at, organization }
    if (added.length > 0)
      planned.steps.push({
        mark: '+',
        subject: `${count(added.length)} in wallet ${name} on ${at}`,
        details: [someOf(added)],
        path: [...path, 'addresses'],
        calls: batches(added).map((addresses) => ({
          where,
          operation: 'BatchRegisterAddresses',
          // The plan is checked before the wallet exists; `new` stands for its id until then.
          request: () => ({ wallet_id: ref.id ?? 'new', addresses }),
        })),
      })
    const subject = `${count(gone.length)} in wallet ${name} on ${at}`
    if (gone.length > 0 && !tools.prune) planned.extras.push(`${domain}: ${subject}`)
    if (gone.length > 0 && tools.prune)
      removals.push({
        mark: '-',
        subject,
        details: [someOf(gone)],
        path: [...path, 'addresses'],
        calls: batches(gone).map((addresses) => ({
          where,
          operation: 'BatchRemoveAddresses',
          request: () => ({ wallet_id: ref.id, addresses }),
        })),
      })
  }
  for (const { name, wallet_id } of stored.filter((one) => !names.has(one.name))) {
    const subject = `wallet ${name} on ${at}`
    if (!tools.prune) planned.extras.push(`${domain}: ${subject}`)
    else
      removals.push({
        ...{ mark: '-', subject, details: [], path: [...here.path, 'wallets'] },
        calls: [
          {
            where: { at, organization },
            operation: 'RemoveWallet',
            request: () => ({ wallet_id }),
          },
        ],
      })
  }
  // Removals first: an address may move from one wallet to another.
  return { ...planned, steps: [...removals, ...planned.steps] }
}

// The service prints addresses with the prefix of its network (P) or the mark of a test network (T), which the
// document's side does not know. Both sides are brought to one form.
const sameForm = (text: string, family: Family): string => {
  const parsed = family.parseAddress(text)
  return parsed.ok ? family.formatAddress(parsed.bytes) : text
}

function creationOf({ name, confirmation }: WalletPart, ref: Ref, here: ChainHere): Step {
  const { at, organization, path } = here
  return {
    mark: '+',
    subject: `wallet ${name} on ${at}`,
    details: confirmation === undefined ? [] : [field('confirmation', confirmation)],
    path,
    calls: [
      {
        where: { at, organization },
        operation: 'RegisterWallet',
        request: () => ({ name, ...(confirmation !== undefined && { confirmation }) }),
        onAnswer: ({ wallet_id }) => {
          ref.id = wallet_id as string
        },
      },
    ],
  }
}

function confirmationChange(
  { name, confirmation }: WalletPart,
  before: StoredWallet,
  { at, organization, path }: ChainHere,
): Step[] {
  if (confirmation === undefined || confirmation === before.confirmation) return []
  const { wallet_id } = before
  return [
    {
      mark: '~',
      subject: `wallet ${name} on ${at}`,
      details: [fromTo('confirmation', before.confirmation, confirmation)],
      path: [...path, 'confirmation'],
      calls: [
        {
          where: { at, organization },
          operation: 'UpdateConfirmation',
          request: () => ({ wallet_id, confirmation }),
        },
      ],
    },
  ]
}

// Addresses of large wallets are listed only where the document manages them; the others cost one
// page.
async function listStored(
  { at, organization }: ChainHere,
  tools: PlanTools,
  managed: ReadonlySet<string>,
): Promise<StoredWallet[]> {
  if (organization.id === undefined) return []
  const read = tools.read(at, organization.id)
  const all = await everyPage(async (page) => {
    const answer = await read('ListWallets', page)
    return { items: answer.wallets, next: answer.pagination.next_page_token }
  })
  return await Promise.all(
    all.map(async (wallet: (typeof all)[number] & { confirmation?: number }) => ({
      ...{ wallet_id: wallet.wallet_id, name: wallet.name },
      confirmation: wallet.confirmation ?? 1,
      addresses:
        wallet.addresses_truncated && managed.has(wallet.name)
          ? await listAddresses(read, wallet.wallet_id)
          : [...wallet.addresses],
    })),
  )
}

const listAddresses = async (read: ReadChain, wallet_id: string): Promise<string[]> =>
  await everyPage(async (page) => {
    const answer = await read('ListAddresses', { wallet_id, ...page })
    return {
      items: answer.addresses.map(({ address }) => address),
      next: answer.pagination.next_page_token,
    }
  })

const count = (addresses: number): string =>
  `${addresses.toLocaleString('en')} address${addresses === 1 ? '' : 'es'}`

// As many as one operation takes.
const batches = (all: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(all.length / maxBatchAddresses) }, (_, index) =>
    all.slice(index * maxBatchAddresses, (index + 1) * maxBatchAddresses),
  )
