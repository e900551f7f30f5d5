import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createPublicClient, http, webSocket } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { createClient, gatewayUrl, gatewayWsUrl } from '../../client/src/index.ts'
import { freshFolder, portolan, runCommand, type Service, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startReceiver } from './receiver.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const folder = await freshFolder()
const dataDir = join(folder, '.data')
await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
const startTimeoutMs = 240_000

const start = () => startService(dataDir, { isFirstStart: true, args: ['--chains', 'c,q,t,s,p'] })
let service: Service = await start()
const client = () => createClient({ ...service.connection, ...service.connection.member! })
/** No process of this installation is left. */
const leftovers = async () => {
  const { stdout } = await run('ps', ['-ww', '-eo', 'args='])
  return stdout.split('\n').filter((line) => line.includes(dataDir))
}
const longWait = { timeoutMs: 60_000 }

test('one command starts everything', async () => {
  const { chains, organization_id } = service.connection
  expect(Object.keys(chains).sort()).toEqual(['c', 'p', 'q', 's', 't'])
  for (const [tag, chain] of Object.entries(chains))
    expect(chain).toMatchObject({
      network: 'mainnet',
      variant: tag.toUpperCase(),
      node_url: expect.stringMatching(/^(http|ws):\/\/127\.0\.0\.1:/),
      faucet_address: expect.any(String),
      faucet_key: expect.any(String),
    })
  for (const tag of ['c', 'q']) expect(chains[tag]!.node_ws_url).toMatch(/^ws:/)
  const admin = createClient({ ...service.connection, ...service.connection.admin! })
  const { organization } = await admin.admin.GetOrganizationByDomain({ domain: 'demo' })
  expect(organization.organization_id).toBe(organization_id)
})

test('portolan chains shows a node of each', async () => {
  const { stdout } = await portolan(['chains'], { dataDir })
  const [nodes = [], tracked = []] = stdout
    .trim()
    .split('\n\n')
    .map((table) => table.split('\n').slice(1))
  expect(tracked.map((row) => row.split(/\s+/).slice(0, 2).join(' '))).toEqual([
    'c/mainnet leading',
    't/mainnet leading',
    's/mainnet leading',
    'p/mainnet leading',
  ])
  expect(nodes.map((row) => row.split(/\s+/).slice(0, 3).join(' '))).toEqual([
    'c/mainnet 31337 local',
    // Their nodes are connected at the first use.
    'c/ropsten - local',
    'q/mainnet 901 local',
    'q/ropsten - local',
    't/mainnet -3 local',
    expect.stringMatching(/^s\/mainnet \w+… local$/),
    expect.stringMatching(/^p\/mainnet 0x\w+… local$/),
  ])
})

test('the gateway serves both networks of the specification', async () => {
  const { base_url, admin } = service.connection
  for (const path of ['c/mainnet', 'c/ropsten', 'q/mainnet', 'q/ropsten']) {
    const answer = await fetch(new URL(`/${path}/v1/${admin!.api_key}`, base_url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'net_version', params: [] }),
      signal: AbortSignal.timeout(20_000),
    })
    const version = path.startsWith('c') ? '31337' : '901'
    expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 1, result: version })
  }
})

test('the query service answers for its chain', async () => {
  const { faucet_address, node_url } = service.connection.chains.q!
  const node = createPublicClient({ transport: http(node_url!) })
  const block = await node.getBlock()
  const answer = await client().q.GetBlock({ block_number: Number(block.number) } as never)
  expect(answer).toMatchObject({ block: { block_hash: block.hash } })
  expect(faucet_address).toMatch(/^0x/)
})

const addressOf = (variant: string, account: string): string => {
  if (variant === 'c') return `0x${account.slice(24)}`
  return variant === 't' ? `0:${account}` : `0x${account}`
}

const wallets: Record<string, { wallet_id: string; address: string; hash: string }> = {}

describe.each(['c', 't', 's', 'p'] as const)('variant %s', (variant) => {
  test('a deposit is listed, and reported by a signed webhook', { timeout: 120_000 }, async () => {
    const receiver = await startReceiver()
    const asset_type = `ASSET_TYPE_${variant.toUpperCase()}`
    const own = client()[variant]
    const address = addressOf(variant, randomBytes(32).toString('hex'))
    const confirmation = variant === 'c' || variant === 's' ? { confirmation: 1 } : {}
    const { wallet_id } = await own.RegisterWallet({
      name: 'five minutes',
      address,
      ...confirmation,
    })
    const { webhook_id } = await own.RegisterWebhook({
      wallet_id,
      webhook_endpoint: receiver.url,
      confirmation: 1,
    })
    receiver.secret = (await own.GetWebhookSigningSecret({ webhook_id })).signing_secret
    const { code, stdout, stderr } = await runCommand(['faucet', variant, address], { dataDir })
    expect(`${code} ${stderr}`).toBe('0 ')
    const hash = stdout.trim()
    await waitFor('the notification', () => receiver.bodies.length > 0, longWait)
    const { data } = receiver.bodies[0]
    expect(data.transaction_hash ?? data.transaction_digest).toBe(hash)
    expect(data.sequence).toBe(1)
    const { transfers } = await own.ListTransfers({ wallet_id })
    expect(transfers).toHaveLength(1)
    await waitFor(
      'the balance',
      async () => {
        const { assets } = await own.ListAssets({ wallet_id, asset_type } as never)
        return assets.some(({ balance }) => BigInt(balance) > 0n)
      },
      longWait,
    )
    expect(receiver.refused).toEqual([])
    wallets[variant] = { wallet_id, address, hash }

    if (variant !== 'c') return
    const node = createPublicClient({ transport: http(service.connection.chains.c!.node_url!) })
    const { blockNumber } = await node.getTransactionReceipt({ hash: hash as `0x${string}` })
    // A few more than there are above it now: blocks continue coming.
    const depth = (await node.getBlockNumber({ cacheTime: 0 })) - blockNumber + 4n
    const replaced = await runCommand(['reorg', 'c', `${depth}`], { dataDir })
    expect(`${replaced.code} ${replaced.stderr}`).toBe('0 ')
    await waitFor('the second notification', () => receiver.bodies.length > 1, longWait)
    expect(receiver.bodies[1].data).toMatchObject({
      transaction_hash: hash,
      sequence: 2,
      transfers: [{ transfer_state: 'TRANSFER_STATE_REORGED' }],
    })
    expect((await own.ListTransfers({ wallet_id })).transfers).toEqual([])
  })
})

// After the deposits: every node has been used, so that no field is empty for lack of calls.
test('status, metrics and portolan chains describe the nodes of all families by the same fields and words', async () => {
  const { admin_url } = service.connection
  const read = (path: string) =>
    fetch(new URL(path, admin_url), { signal: AbortSignal.timeout(20_000) })
  const status = (await (await read('/status')).json()) as {
    chains: Record<string, { nodes: Record<string, { upstreams: Record<string, unknown>[] }> }>
  }
  const metrics = await (await read('/metrics')).text()
  const table = await portolan(['chains'], { dataDir })
  const [heading = '', ...rows] = table.stdout.split('\n\n')[0]!.split('\n')
  const cellsOf = (row: string) => row.split(/ {2,}/)
  expect(cellsOf(heading)).toEqual(
    'CHAIN ID NODE STATE HEAD LAG P50 P95 ERRORS BREAKER CAPABILITIES'.split(' '),
  )
  for (const chain of ['c', 't', 's', 'p']) {
    const [node] = status.chains[chain]!.nodes.mainnet!.upstreams
    expect(node, chain).toMatchObject({
      state: 'healthy',
      reason: '',
      head: expect.any(Number),
      lag: expect.any(Number),
      latency_ms: { p50: expect.any(Number), p95: expect.any(Number) },
      error_rate: expect.any(Number),
      breaker: 'closed',
      capabilities: expect.any(Array),
      requests: expect.any(Number),
      errors: expect.any(Number),
    })
    const labels = `{chain="${chain}",network="mainnet",upstream="${node!.name}"`
    for (const name of nodeMetrics)
      expect(metrics, chain).toContain(`portolan_upstream_${name}${labels}`)
    const row = cellsOf(rows.find((one) => one.startsWith(`${chain}/mainnet `)) ?? '')
    const millis = expect.stringMatching(/^\d+ ms$/)
    const number = expect.stringMatching(/^\d+$/)
    expect(row.slice(3, 10), chain).toEqual([
      ...['healthy', number, number, millis, millis],
      ...[expect.stringMatching(/^\d+\.\d %$/), 'closed'],
    ])
  }
})

const nodeMetrics = [
  ...['up', 'head', 'lag', 'error_rate', 'breaker', 'requests_total', 'errors_total'],
  ...['latency_p50_seconds', 'latency_p95_seconds', 'request_seconds_count'],
]

test('every state of a managed transaction is reported by a signed webhook', async () => {
  const receiver = await startReceiver()
  const own = client().c
  const account = privateKeyToAccount(`0x${randomBytes(32).toString('hex')}`)
  const address = account.address.toLowerCase()
  const { wallet_id } = await own.RegisterWallet({
    name: 'sending',
    address,
    confirmation: 1,
  })
  const { webhook_id } = await own.RegisterWebhook({
    wallet_id,
    webhook_endpoint: receiver.url,
    confirmation: 1,
  })
  receiver.secret = (await own.GetWebhookSigningSecret({ webhook_id })).signing_secret
  const { code } = await runCommand(['faucet', 'c', address], { dataDir })
  expect(code).toBe(0)
  await waitFor('the deposit is reported', () => receiver.bodies.length > 0, longWait)
  const { transaction } = await own.CreateTransaction({
    wallet_id,
    from: address,
    to: service.connection.chains.c!.faucet_address!.toLowerCase(),
    value: '5',
  } as never)
  const { transaction_id } = transaction
  const { transaction_message_to_sign } = await own.GetTransactionMessageToSign({ transaction_id })
  const hash = transaction_message_to_sign as `0x${string}`
  await own.SubmitTransactionSignature({
    transaction_id,
    signature: await account.sign({ hash }),
  })
  await own.SendTransaction({ transaction_id })
  const notified = () =>
    receiver.bodies
      .toSorted((a, b) => a.data.sequence - b.data.sequence)
      .filter(({ data }) => data.transaction)
  // Deliveries to one endpoint are sent in parallel: the last one may arrive before the one in front of it.
  const numbers = () => receiver.bodies.map(({ data }) => data.sequence).sort((a, b) => a - b)
  await waitFor(
    'its end and everything before it is reported',
    () =>
      notified().at(-1)?.data.transaction.transaction_state === 'TRANSACTION_STATE_CONFIRMED' &&
      numbers().at(-1) === receiver.bodies.length,
    longWait,
  )
  expect(receiver.refused).toEqual([])
  for (const body of notified())
    expect(body).toMatchObject({
      webhook_id,
      notification_type: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
      data: { transaction: { transaction_id, wallet_id } },
    })
  const states = notified().map(({ data }) => data.transaction.transaction_state)
  const path = ['CREATED', 'SIGNED', 'SENDING', 'SENT', 'MINED', 'CONFIRMED']
  // A quick block may come before the node's answer: then SENT is not among them.
  expect(states).toEqual(
    path.map((name) => `TRANSACTION_STATE_${name}`).filter((state) => states.includes(state)),
  )
  expect(states.slice(0, 2)).toEqual(['TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED'])
  expect(numbers()).toEqual(numbers().map((_, at) => at + 1))
}, 180_000)

test('viem works over both addresses of the gateway', async () => {
  const { base_url, ws_url, member } = service.connection
  const at = { chain: 'c', network: 'mainnet', api_key: member!.api_key }
  const plain = createPublicClient({ transport: http(gatewayUrl({ base_url, ...at })) })
  expect(await plain.getChainId()).toBe(31337)
  const live = createPublicClient({
    transport: webSocket(gatewayWsUrl({ base_url: ws_url, ...at })),
  })
  const heads: bigint[] = []
  const stop = live.watchBlockNumber({ onBlockNumber: (number) => heads.push(number) })
  await waitFor('a head', () => heads.length > 0, longWait)
  stop()
  const socket = await live.transport.getRpcClient()
  socket.close()
})

test.each([
  ['deposit-detector.ts', ['c'], /deposit of \d+ to 0x/],
  ['deposit-detector.ts', ['t'], /deposit of \d+ to 0:/],
  ['send-erc20.ts', [], /0x[0-9a-f]{64} is TRANSACTION_STATE_CONFIRMED/],
  ['live-logs.ts', ['1'], /transfer in block \d+: \d+ to 0x/],
])('the example %s %s runs', { timeout: 120_000 }, async (name, args, expected) => {
  const { stdout } = await run(process.execPath, [join(root, 'examples', name), ...args], {
    cwd: folder,
    timeout: 100_000,
  })
  expect(stdout).toMatch(expected)
})

const guide = (name: string) => readFile(join(root, 'docs', name), 'utf8')
const blocks = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code]) => code!,
  )

test.each([
  ['quick-start.md', 1],
  ['gateway.md', 3],
])('the programs in docs/%s run', { timeout: 120_000 }, async (name, count) => {
  const programs = blocks(await guide(name), 'ts')
  expect(programs).toHaveLength(count)
  for (const program of programs) {
    const file = join(folder, 'program.ts')
    await writeFile(file, program)
    const { stdout } = await run(process.execPath, [file], { cwd: folder, timeout: 100_000 })
    expect(stdout).toMatch(/\d+/)
  }
})

// The commands of production.md run in `test/deploy/production.long.test.ts`, on servers of their own.
test.each(['quick-start.md', 'query.md'])(
  'the commands in docs/%s work',
  { timeout: 180_000 },
  async (name) => {
    const lines = blocks(await guide(name), 'sh')
      .join('')
      .split('\n')
    const commands = lines
      .filter((line) => /^npx portolan (?!init|start)/.test(line))
      .map((line) => line.slice('npx portolan '.length))
    expect(commands.length).toBeGreaterThan(1)
    for (const command of commands) {
      const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
      const args = words.map(([, a, b, c]) => (a ?? b ?? c)!)
      const { code, stderr } = await runCommand(args, { dataDir, cwd: folder })
      expect(`${command}: ${code} ${code ? stderr : ''}`).toBe(`${command}: 0 `)
    }
  },
)

test('everything is still there after a restart', { timeout: startTimeoutMs }, async () => {
  expect(await service.stop('SIGINT')).toMatchObject({ code: 0 })
  expect(await leftovers()).toEqual([])
  service = await start()
  for (const variant of ['t', 's', 'p'] as const) {
    const { wallet_id, hash } = wallets[variant]!
    const { transfers } = await client()[variant].ListTransfers({ wallet_id })
    expect(JSON.stringify(transfers)).toContain(hash)
  }
  // The chains continue where they were, and are tracked again.
  for (const variant of ['c', 't', 's', 'p'] as const) {
    const { address, wallet_id } = wallets[variant]!
    const { stdout } = await runCommand(['faucet', variant, address], { dataDir })
    await waitFor(
      `the second transfer on ${variant}`,
      async () => {
        const { transfers } = await client()[variant].ListTransfers({ wallet_id })
        return JSON.stringify(transfers).includes(stdout.trim())
      },
      longWait,
    )
  }
  expect(await service.stop()).toMatchObject({ code: 0 })
  expect(await leftovers()).toEqual([])
})
