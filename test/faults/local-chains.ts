import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createClient } from '../../client/src/index.ts'
import { callRpc } from '../../devnet/anvil/rpc.ts'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import type { Chain } from '../../src/chains/chain.ts'
import { createPolkadotChain } from '../../src/chains/polkadot/chain.ts'
import { createSuiChain } from '../../src/chains/sui/chain.ts'
import { createTonChain } from '../../src/chains/ton/chain.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { waitFor } from '../helpers/wait-for.ts'

// What the local chains of the embedded mode say themselves, for programs that compare the service with them.

type Read<value> = (chain: Chain, signal: AbortSignal) => Promise<value>

const longWait = { timeoutMs: 240_000, everyMs: 200 }

const clientOf = ({ base_url, admin }: ConnectionFile) => createClient({ base_url, ...admin! })

const nodeOf = ({ chains }: ConnectionFile, tag: string): string => {
  const url = chains[tag]?.node_url
  if (url === undefined) throw new Error(`no local node of ${tag}`)
  return url
}

/** Reads a chain of T, S or P through an adapter of its own. */
async function readChain<value>(
  connection: ConnectionFile,
  service: 't' | 's' | 'p',
  read: Read<value>,
): Promise<value> {
  const url = nodeOf(connection, service)
  const tools = { clock: systemClock, log: silentLog, upstreams: [{ url }] }
  const make = { t: createTonChain, s: createSuiChain, p: createPolkadotChain }[service]
  const chain = make(tools)
  try {
    return await read(chain, AbortSignal.timeout(60_000))
  } finally {
    await chain.stop()
  }
}

/** The native balance of an address as the chain itself has it. */
export async function balanceOnChain(
  connection: ConnectionFile,
  service: WalletService,
  address: string,
): Promise<bigint> {
  const node_url = nodeOf(connection, service)
  if (service === 'c')
    return BigInt(await callRpc<string>(node_url, 'eth_getBalance', [address, 'latest']))
  if (service === 't') {
    const url = new URL(`${node_url}/getAddressInformation`)
    url.searchParams.set('address', address)
    const { result } = (await (await fetch(url)).json()) as { result: { balance: string } }
    return BigInt(result.balance)
  }
  return await readChain(connection, service, async (chain, signal) => {
    const at = await chain.head(signal)
    const parsed = chain.parseAddress(address)
    if (!parsed.ok) throw new Error(parsed.detail)
    const query = { address: parsed.bytes, asset: chain.native }
    const [reading] = await chain.readBalances([query], at, signal)
    return reading?.balance ?? -1n
  })
}

const wordOf = (address: string): string => address.slice(2).padStart(64, '0')

/** The balance of the ERC-20 of chain C as its contract has it. */
export async function tokensOnChain(connection: ConnectionFile, address: string): Promise<bigint> {
  const call = { to: connection.chains.c!.contracts!.erc20, data: `0x70a08231${wordOf(address)}` }
  return BigInt(await callRpc<string>(nodeOf(connection, 'c'), 'eth_call', [call, 'latest']))
}

/** Gives an address some of the ERC-20 of chain C. */
export async function mintTokens(connection: ConnectionFile, address: string): Promise<void> {
  const url = nodeOf(connection, 'c')
  const [from] = await callRpc<string[]>(url, 'eth_accounts', [])
  // mint(address,uint256) of devnet/contracts/tokens.sol
  const data = `0x40c10f19${wordOf(address)}${12_345n.toString(16).padStart(64, '0')}`
  const to = connection.chains.c!.contracts!.erc20
  await callRpc(url, 'eth_sendTransaction', [{ from, to, data }])
}

/** What must be the same after a restart: identities, old blocks, and an old transaction of chain Q. */
export type Past = {
  numbers: Record<'t' | 's' | 'p', number>
  /** Of chain Q. */
  transaction_hash: string
  facts: unknown
}

/** Makes a transaction on chain Q, waits until it is on disk, and notes what the chains and the service say. */
export async function notePast(connection: ConnectionFile, dataDir: string): Promise<Past> {
  const url = nodeOf(connection, 'q')
  const [from, to] = await callRpc<string[]>(url, 'eth_accounts', [])
  const sent = { from, to, value: '0x7' }
  const transaction_hash = await callRpc<string>(url, 'eth_sendTransaction', [sent])
  await waitFor(
    'the transaction of chain Q is on disk',
    async () => {
      const params = [transaction_hash]
      const receipt = await callRpc<{ blockNumber: string } | null>(
        ...[url, 'eth_getTransactionReceipt', params],
      )
      const text = await readFile(join(dataDir, 'chains/q/state.json'), 'utf8').catch(() => '{}')
      const stored = parseState(text)
      return receipt !== null && stored >= Number(receipt.blockNumber)
    },
    longWait,
  )
  const numberOf = (service: 't' | 's' | 'p') =>
    readChain(connection, service, async (chain, signal) => {
      const { number } = await chain.head(signal)
      return Math.max(1, number - 3)
    })
  const numbers = { t: await numberOf('t'), s: await numberOf('s'), p: await numberOf('p') }
  return {
    ...{ numbers, transaction_hash },
    facts: await readFacts(connection, numbers, transaction_hash),
  }
}

/** What the chains and the service say now of the same blocks and the same transaction. */
export const readPast = (connection: ConnectionFile, past: Past): Promise<unknown> =>
  readFacts(connection, past.numbers, past.transaction_hash)

async function readFacts(
  connection: ConnectionFile,
  numbers: Past['numbers'],
  transaction_hash: string,
) {
  const facts: Record<string, unknown> = {}
  for (const tag of ['c', 'q'])
    for (const block of ['0x0', '0x1']) {
      const params = [block, false]
      const { hash } = await callRpc<{ hash: string }>(
        ...[nodeOf(connection, tag), 'eth_getBlockByNumber', params],
      )
      facts[`${tag} ${block}`] = hash
    }
  for (const service of ['t', 's', 'p'] as const)
    facts[service] = await readChain(connection, service, async (chain, signal) => {
      const identity = await chain.identity(signal)
      const header = await chain.header(numbers[service], signal)
      return { identity, hash: header && Buffer.from(header.hash).toString('hex') }
    })
  const { q } = clientOf(connection)
  const { transaction } = await q.GetTransaction({ transaction_hash })
  const { block_number } = transaction
  facts.query = {
    genesis: (await q.GetBlock({ block_number: 0 })).block,
    block: (await q.GetBlock({ block_number: Number(block_number) })).block,
    transaction,
    receipt: (await q.GetTransactionReceipt({ transaction_hash })).transaction_receipt,
  }
  return facts
}

// The file may be replaced while it is read.
function parseState(text: string): number {
  try {
    return Number((JSON.parse(text) as { best_block_number?: number }).best_block_number ?? -1)
  } catch {
    return -1
  }
}

/** Waits until the service answers with blocks of chain Q that were made after now. */
export async function waitForQuery(connection: ConnectionFile): Promise<void> {
  const url = nodeOf(connection, 'q')
  const next = Number(await callRpc<string>(url, 'eth_blockNumber', [])) + 1
  const { q } = clientOf(connection)
  await waitFor(
    `block ${next} of chain Q`,
    async () => {
      const answer = await q.GetBlock({ block_number: next }).catch(() => undefined)
      return Number(answer?.block.block_number) === next
    },
    longWait,
  )
}
