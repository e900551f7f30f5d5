import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { encodeData, from as functionOf } from 'ox/AbiFunction'
import { fromPublicKey } from 'ox/Address'
import { getPublicKey, sign } from 'ox/Secp256k1'
import { toHex } from 'ox/Signature'
import { type Client, createClient, PortolanError } from '../../../client/src/index.ts'
import type { DevFacts, DevTag } from '../../../devnet/keeper-messages.ts'
import type { WalletService } from '../../contract/variant.ts'
import type { Log } from '../../lib/log.ts'
import type { Pair } from '../bootstrap.ts'
import type { ChainKeeper } from './chain-keeper.ts'
import type { DemoWallets } from './demo.ts'
import {
  ensureAdministration,
  orIfMissing,
  type SpareAdministration,
} from './example-administration.ts'

type Hex = `0x${string}`

/** Where a NATS server of this machine would be. */
export const exampleServers = ['127.0.0.1:4222']

/** A wallet that nothing uses, its webhook, and where that delivers to. */
export type SpareWallet = {
  wallet_id: string
  webhook_id: string
  webhook_endpoint: string
  sink_id: string
}

/** What the requests of the API reference name, beside the demo wallets. It is filled in step by step. */
export type ExampleMaterial = {
  /** An empty wallet and its webhook per chain, which can be changed without a loss to the demo. */
  spare: Partial<Record<WalletService, SpareWallet>>
  /** A notification per chain. */
  webhook_history_ids: Partial<Record<WalletService, string>>
  /** A signed transaction, and one that can be canceled. */
  payment?: { transaction_id: string; signature: string; canceled_id: string }
  /** Transactions of the query chain. */
  query?: {
    transaction_hash: string
    /** Of a transaction with a call inside. */
    outer_hash: string
    pending_hash: string
    pending_from: string
  }
  contracts?: DevFacts['contracts']
  administration?: SpareAdministration
}

type Options = {
  base_url: string
  pair: Pair
  facts: Partial<Record<DevTag, DevFacts>>
  wallets: DemoWallets
  fund: ChainKeeper['fund']
  signal: AbortSignal
  log: Log
}

const spareName = 'Example wallet'

/**
 * Makes what the example requests need, through the API. Everything is found again at later starts. A part
 * that fails is left out: the demo is worth having without it.
 */
export async function prepareExamples(material: ExampleMaterial, options: Options): Promise<void> {
  const { base_url, pair, facts, wallets, signal, log } = options
  const client = createClient({ base_url, ...pair })
  const attempt = async (chain: string, work: () => Promise<void>) => {
    if (signal.aborted) return
    await work().catch((error: unknown) => {
      if (!signal.aborted) log.warn({ chain, error }, 'examples could not be prepared')
    })
  }
  material.contracts = facts.c?.contracts
  await attempt('admin', async () => {
    material.administration = await ensureAdministration(client)
  })
  const services = Object.keys(wallets) as WalletService[]
  for (const service of services)
    await attempt(service, async () => {
      const webhook_endpoint = `${base_url}/dev/v1/sink/${service}`
      material.spare[service] = await ensureSpare(client[service], webhook_endpoint)
    })
  const { q } = facts
  if (q)
    await attempt('q', async () => {
      material.query = await makeTransactions(client, q)
    })
  if (wallets.c)
    await attempt('c', async () => {
      material.payment = await ensurePayment(client, options)
    })
  for (const service of services)
    await attempt(service, async () => {
      const { webhook_id } = wallets[service]!
      material.webhook_history_ids[service] = await findHistory(client[service], webhook_id, signal)
    })
}

/** Documents within this time share a refresh, and a document waits no longer than this for one. */
const refreshAgeMs = 500
const refreshWaitMs = 2_000

/** Creates again what examples have used up since the last document, so that the requests of each document succeed. */
export function createExampleRefresh(
  material: ExampleMaterial,
  { base_url, pair, log }: Pick<Options, 'base_url' | 'pair' | 'log'>,
): () => Promise<void> {
  const client = createClient({ base_url, ...pair })
  let refreshed = 0
  let running: Promise<void> | undefined
  const refresh = async (before: SpareAdministration) => {
    try {
      material.administration = await ensureAdministration(client, before)
    } catch (error) {
      log.debug({ err: error }, 'examples could not be refreshed')
    }
    refreshed = performance.now()
    running = undefined
  }
  return async () => {
    const before = material.administration
    // The examples are still being prepared for the first time.
    if (!before || performance.now() - refreshed < refreshAgeMs) return
    running ??= refresh(before)
    await Promise.race([running, delay(refreshWaitMs, undefined, { ref: false })])
  }
}

async function ensureSpare(
  operations: Client[WalletService],
  webhook_endpoint: string,
): Promise<SpareWallet> {
  const { wallets } = await operations.ListWallets({ page_size: 100 })
  const known = wallets.find(({ name }) => name === spareName)
  const { wallet_id } = known ?? (await operations.RegisterWallet({ name: spareName }))
  const { webhooks } = await operations.ListWebhooks({ wallet_id })
  const { webhook_id } =
    webhooks[0] ??
    (await operations.RegisterWebhook({ wallet_id, webhook_endpoint, confirmation: 1 }))
  return { wallet_id, webhook_id, webhook_endpoint, sink_id: await ensureSink(operations) }
}

/** A sink that is disabled: there is no broker beside the demo. */
async function ensureSink(operations: Client[WalletService]): Promise<string> {
  const subject_prefix = 'example'
  const { sinks } = await operations.ListSinks({})
  const known = sinks.find((sink) => sink.subject_prefix === subject_prefix)
  if (known) return known.sink_id
  const { sink_id } = await operations.RegisterSink({
    ...{ sink_type: 'SINK_TYPE_NATS', servers: exampleServers, tls: false, confirmation: 1 },
    subject_prefix,
  })
  await operations.DisableSink({ sink_id })
  return sink_id
}

/** The key of nothing but these examples; it is the same at every start. */
const signerKey = createHash('sha256').update('portolan example signer').digest()

/** Each state is final or lasts: a signed transaction does not expire, a canceled one stays canceled. */
async function ensurePayment(
  { c }: Client,
  { fund, signal }: Options,
): Promise<NonNullable<ExampleMaterial['payment']>> {
  const from = fromPublicKey(getPublicKey({ privateKey: signerKey })).toLowerCase()
  const wallet_id = await orIfMissing(
    c.GetWallet({ address: from }).then(({ wallet }) => wallet.wallet_id),
    async () => (await c.RegisterWallet({ name: 'Example payments', address: from })).wallet_id,
  )
  await fund('c', from, 10n ** 18n)
  // The id makes each exist once, however often the service starts.
  const make = (transaction_id: string, nonce: number) =>
    c.CreateTransaction({
      ...{ wallet_id, from, to: from, value: '1', transaction_id, nonce },
      ...{ gas: '21000', gas_price: '2000000000' },
    })
  const transaction_id = 'example-signed'
  await retried(() => make(transaction_id, 0), signal)
  const { transaction_message_to_sign } = await c.GetTransactionMessageToSign({ transaction_id })
  const payload = transaction_message_to_sign as Hex
  const signature = toHex(sign({ payload, privateKey: signerKey, extraEntropy: false }))
  await c.SubmitTransactionSignature({ transaction_id, signature })
  const canceled_id = 'example-canceled'
  await make(canceled_id, 1)
  return { transaction_id, signature, canceled_id }
}

/** The funds arrive with a block. */
async function retried<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  // Ten seconds in all: a few blocks of a local chain.
  for (let left = 20; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (left === 0 || !(error instanceof PortolanError)) throw error
      if (error.reason !== 'INSUFFICIENT_FUNDS') throw error
      await delay(500, undefined, { signal })
    }
  }
}

const mint = functionOf('function mint(address to, uint256 value)')

/** One with a log, one with a call inside, and one that waits for an earlier nonce permanently. */
async function makeTransactions(
  { q }: Client,
  { node_url, contracts }: DevFacts,
): Promise<NonNullable<ExampleMaterial['query']>> {
  const call = (method: string, params: unknown[]) => callNode(node_url, method, params)
  // An account that neither the traffic nor the demo wallet uses.
  const [from] = ((await call('eth_accounts', [])) as Hex[]).slice(6)
  if (!from || !contracts) throw new Error('the chain has no account or no token for examples')
  const send = async (fields: object) =>
    String(await call('eth_sendTransaction', [{ from, ...fields }]))
  const data = encodeData(mint, [from, 1n])
  const transaction_hash = await send({ to: contracts.erc20, data })
  const outer_hash = await send({
    data: callFromConstructor(contracts.erc20, data),
    // An estimate would leave no gas for the call, which may fail.
    gas: '0x493e0',
  })
  // Far ahead, so that the transaction stays pending for as long as the demo runs.
  const count = Number(await call('eth_getTransactionCount', [from, 'pending']))
  const nonce = `0x${(count + 1_000).toString(16)}`
  const pending_hash = await send({ to: from, value: '0x1', nonce })
  // From here on the service knows it.
  await q.ListPendingTransactions({ from })
  return { transaction_hash, outer_hash, pending_hash, pending_from: from }
}

/** The code of a constructor that makes one call with at most 255 bytes and leaves no code. */
function callFromConstructor(to: string, data: Hex): Hex {
  const body = data.slice(2)
  const length = (body.length / 2).toString(16).padStart(2, '0')
  // CODECOPY of what follows these 41 bytes; CALL with all gas, no value and no result; STOP.
  return `0x60${length}60296000396000600060${length}6000600073${to.slice(2)}5af100${body}`
}

async function callNode(url: string, method: string, params: unknown[]): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(10_000),
  })
  const { result, error } = (await answer.json()) as { result?: unknown; error?: object }
  if (error) throw new Error(`${method}: ${JSON.stringify(error)}`)
  return result
}

/** The traffic makes one soon; without traffic there is a test notification. */
async function findHistory(
  operations: Client[WalletService],
  webhook_id: string,
  signal: AbortSignal,
): Promise<string> {
  for (let left = 30; left > 0; left--) {
    const { webhook_histories } = await operations.ListWebhookHistories({ webhook_id })
    const delivered = webhook_histories.find(({ delivery_count }) => delivery_count > 0)
    if (delivered) return delivered.webhook_history_id
    await delay(1_000, undefined, { signal })
  }
  return (await operations.SendTestWebhook({ webhook_id })).webhook_history_id
}
