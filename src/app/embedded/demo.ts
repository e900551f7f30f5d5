import { createHash } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Client, createClient, PortolanError } from '../../../client/src/index.ts'
import type { DevFacts, DevTag } from '../../../devnet/keeper-messages.ts'
import { families } from '../../chains/registry.ts'
import type { WalletService } from '../../contract/variant.ts'
import type { Log } from '../../lib/log.ts'
import type { Pair } from '../bootstrap.ts'

/** What the demo organization has on one chain. */
export type DemoWallet = {
  wallet_id: string
  address: string
  webhook_id: string
  signing_secret: string
}

/** By the tag of the chain. */
export type DemoWallets = Partial<Record<WalletService, DemoWallet>>

type Kept = DemoWallet & { webhook_endpoint: string }

/** Balances and webhooks wait for this many blocks; a reorganization of two blocks is visible. */
const confirmation = 1

/**
 * Makes one wallet and one webhook per chain, through the public API. They are found again
 * at later starts by a file of the data directory.
 */
export async function ensureDemoWallets(options: {
  dataDir: string
  base_url: string
  pair: Pair
  facts: Partial<Record<DevTag, DevFacts>>
  log: Log
}): Promise<DemoWallets> {
  const { dataDir, base_url, pair, facts, log } = options
  const client = createClient({ base_url, ...pair })
  const file = join(dataDir, 'demo.json')
  // A missing or damaged file only makes new wallets.
  const kept = await readKept(file)
  const wallets: Partial<Record<WalletService, Kept>> = {}
  // Chain q has no wallets.
  for (const service of ['c', 't', 's', 'p'] as const) {
    const found = facts[service]
    if (!found) continue
    try {
      wallets[service] = await ensureWallet(client, service, {
        kept: kept[service],
        contracts: found.contracts,
        webhook_endpoint: `${base_url}/dev/v1/sink/${service}`,
      })
    } catch (error) {
      // The service is worth starting without its demonstration.
      log.warn({ chain: service, error }, 'creating the demo wallet failed')
    }
  }
  // Whole or not at all: half a file would make a second wallet.
  await writeFile(`${file}.new`, JSON.stringify({ ...kept, ...wallets }, null, 2), { mode: 0o600 })
  await rename(`${file}.new`, file)
  return wallets
}

const readKept = (file: string): Promise<Partial<Record<WalletService, Kept>>> =>
  readFile(file, 'utf8').then(JSON.parse, () => ({}))

async function ensureWallet(
  client: Client,
  service: WalletService,
  options: {
    kept: Kept | undefined
    contracts: DevFacts['contracts']
    webhook_endpoint: string
  },
): Promise<Kept> {
  const { kept, contracts, webhook_endpoint } = options
  const operations = client[service]
  const address = demoAddress(service)
  const wallet_id =
    kept && (await isThere(operations.GetWallet({ wallet_id: kept.wallet_id })))
      ? kept.wallet_id
      : (await operations.RegisterWallet({ name: 'Demo wallet', address })).wallet_id
  if (contracts) await registerContracts(client, contracts)

  // Another port is another endpoint.
  const isWatched =
    kept?.wallet_id === wallet_id &&
    kept.webhook_endpoint === webhook_endpoint &&
    (await isThere(operations.GetWebhookSigningSecret({ webhook_id: kept.webhook_id })))
  if (kept && !isWatched) await isThere(operations.RemoveWebhook({ webhook_id: kept.webhook_id }))
  const webhook_id = isWatched
    ? kept.webhook_id
    : (await operations.RegisterWebhook({ wallet_id, webhook_endpoint, confirmation })).webhook_id
  const { signing_secret } = await operations.GetWebhookSigningSecret({ webhook_id })
  return { wallet_id, address, webhook_id, signing_secret, webhook_endpoint }
}

async function registerContracts(
  client: Client,
  { erc20, erc721 }: NonNullable<DevFacts['contracts']>,
): Promise<void> {
  const known = await client.c.ListContracts({})
  // The service prints addresses of contracts in lower case.
  const has = (address: string) =>
    known.contracts.some(({ contract_address }) => contract_address === address.toLowerCase())
  if (!has(erc20))
    await client.c.RegisterContract({
      contract_address: erc20.toLowerCase(),
      contract_type: 'CONTRACT_TYPE_ERC20',
    })
  if (!has(erc721))
    await client.c.RegisterContract({
      contract_address: erc721.toLowerCase(),
      contract_type: 'CONTRACT_TYPE_ERC721',
    })
}

/** False when what the call names is not there. */
async function isThere(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (error instanceof PortolanError && error.status === 404) return false
    throw error
  }
}

const digestOf = (service: WalletService): Buffer =>
  createHash('sha256').update(`portolan demo wallet ${service}`).digest()

/** The account of the demo wallet on each chain; those of T, S and P have no key. */
const demoAccounts: Readonly<Record<WalletService, Buffer>> = {
  // One of the accounts that anvil signs for, so that the wallet also sends.
  c: Buffer.from('70997970c51812dc3a010c7d01b50e0d17dc79c8', 'hex'),
  // In workchain 0.
  t: Buffer.concat([Buffer.alloc(1), digestOf('t')]),
  s: digestOf('s'),
  p: digestOf('p'),
}

const demoAddress = (service: WalletService): string =>
  families[service]().formatAddress(demoAccounts[service])
