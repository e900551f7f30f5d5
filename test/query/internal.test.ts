import { encodeFunctionData, type Hex, parseAbi } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { contracts, createSender, encode } from '../chains/evm/token-contracts.ts'
import { startMethodProxy } from './method-proxy.ts'
import { type QueryApp, startQueryApp } from './query-app.ts'

const anvil = await startAnvil({ args: ['--no-mining', '--network', 'optimism'] })
afterAll(anvil.stop)
const sender = createSender(anvil)
const [from, other] = (await anvil.call<string[]>('eth_accounts')) as [string, string]
// Stands on every anvil: makes contracts with CREATE2.
const factory = '0x4e59b44847b379578588920ca78fbf26c0b4956c'

const multicall = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'function aggregate3(Call3[] calls)',
])
const aggregate = (calls: { target: string; callData: string }[]): string =>
  encodeFunctionData({
    abi: multicall,
    functionName: 'aggregate3',
    args: [calls.map((call) => ({ ...call, allowFailure: true })) as never],
  })

/** Code that makes one call of a kind when it is run as a constructor. */
const oneCall = (opcode: string, value = '') =>
  `0x6000600060006000${value}73${other.slice(2)}5a${opcode}00`

type Frame = {
  transaction_hash: string
  call_type: string
  trace_index: string
  from: string
  to: string | null
  value: string
  error: string
  gas: number
  gas_used: number
  input: string
  output: string
}

const deep = 40
const wide = 120
const hashes: Record<string, string> = {}
let relay: string
let reader: string
let coin: string

const proxies = {
  both: await startMethodProxy(anvil.url),
  parity: await startMethodProxy(anvil.url, ['debug_traceTransaction']),
  none: await startMethodProxy(anvil.url, [
    'debug_traceTransaction',
    'trace_transaction',
    'trace_block',
  ]),
}
const apps = {} as Record<keyof typeof proxies, QueryApp>

beforeAll(async () => {
  relay = await sender.deploy('Relay', from, 100n)
  reader = await sender.deploy('Reader', from)
  coin = await sender.deploy('Coin', from)
  const to = relay
  hashes.plain = await sender.send({ from, to: other, value: 1n })
  hashes.pass = await sender.send({ from, to, data: encode('pass', other), value: 5n })
  hashes.vain = await sender.send({ from, to, data: encode('passInVain', other), value: 5n })
  hashes.delegate = await sender.send({ from, to, data: encode('delegate', other), value: 5n })
  hashes.end = await sender.send({ from, to, data: encode('makeAndEnd', other), value: 5n })
  hashes.fail = await sender.send({ from, to, data: encode('fail'), value: 5n })
  const salted = `0x${'00'.repeat(32)}${contracts.Coin.bytecode.slice(2)}`
  hashes.create2 = await sender.send({ from, to: factory, data: salted })
  hashes.collision = await sender.send({ from, to: factory, data: salted })
  hashes.static = await sender.send({ from, data: oneCall('fa') })
  hashes.callcode = await sender.send({ from, data: oneCall('f2', '6003'), value: 5n })
  hashes.badCreate = await sender.send({ from, data: '0x60fe60005260016001601f6000f000' })
  let nested = aggregate([])
  for (let level = 1; level < deep; level++)
    nested = aggregate([{ target: reader, callData: nested }])
  hashes.deep = await sender.send({ from, to: reader, data: nested })
  const mint = { target: coin, callData: encode('mint', other, 1n) }
  hashes.wide = await sender.send({ from, to: reader, data: aggregate(Array(wide).fill(mint)) })
  await anvil.call('evm_mine')
  apps.both = await startQueryApp([proxies.both.url])
  apps.parity = await startQueryApp([proxies.parity.url], { beside: apps.both })
  apps.none = await startQueryApp([proxies.none.url], { beside: apps.both })
}, 120_000)

const list = async (app: QueryApp, transaction_hash: string | undefined): Promise<Frame[]> => {
  const { status, json } = await app.query('ListInternalTransactions', { transaction_hash })
  expect({ status, detail: json.detail }).toEqual({ status: 200, detail: undefined })
  return json.internal_transactions
}

/** As much of a frame as follows from what the contracts do. */
const short = ({ trace_index, call_type, from, to, value, error }: Frame) =>
  [trace_index, call_type, from, to, value, error] as const

describe.each(['both', 'parity'] as const)('by the tracer of a node with %s', (kind) => {
  const shortOf = async (name: string) => (await list(apps[kind], hashes[name])).map(short)

  it('a payment and a failed call have none', async () => {
    expect(await shortOf('plain')).toEqual([])
    expect(await shortOf('fail')).toEqual([])
  })

  it('a payment out of a contract', async () => {
    expect(await shortOf('pass')).toEqual([['0', 'call', relay, other, '5', '']])
  })

  it('a reverted inner call has its error, and its children stay visible', async () => {
    expect(await shortOf('vain')).toEqual([
      ['0', 'call', relay, relay, '5', 'execution reverted'],
      ['0_0', 'call', relay, other, '5', ''],
    ])
  })

  it("a delegate call does not carry its parent's value", async () => {
    expect(await shortOf('delegate')).toEqual([
      ['0', 'delegatecall', relay, relay, '0', ''],
      ['0_0', 'call', relay, other, '5', ''],
    ])
  })

  it('a creation, and an end that pays', async () => {
    const made = expect.stringMatching(/^0x[0-9a-f]{40}$/)
    expect(await shortOf('end')).toEqual([
      ['0', 'create', relay, made, '5', ''],
      ['1', 'call', relay, made, '0', ''],
      ['1_0', 'selfdestruct', made, other, '5', ''],
    ])
  })

  it('create2, and one that finds its place taken', async () => {
    const [created] = await list(apps[kind], hashes.create2)
    expect(created).toMatchObject({ call_type: 'create2', from: factory, value: '0', error: '' })
    expect(created?.input).toBe(contracts.Coin.bytecode)
    expect(created?.output).toBe(await anvil.call('eth_getCode', [created?.to, 'latest']))
    const [refused] = await list(apps[kind], hashes.collision)
    expect(refused).toMatchObject({ call_type: 'create2', to: null, output: '0x' })
    expect(refused?.error).not.toBe('')
  })

  it('calls that can move nothing have no value', async () => {
    expect((await shortOf('static')).map((frame) => [frame[1], frame[4]])).toEqual([
      ['staticcall', '0'],
    ])
    expect((await shortOf('callcode')).map((frame) => [frame[1], frame[4]])).toEqual([
      ['callcode', '0'],
    ])
  })

  it('a creation that failed has no address and has used up its gas', async () => {
    const [frame] = await list(apps[kind], hashes.badCreate)
    expect(frame).toMatchObject({ call_type: 'create', to: null, input: '0xfe' })
    expect(frame?.error).toMatch(/^invalid opcode/)
    expect(frame?.gas_used).toBe(frame?.gas)
  })

  it('a deep tree', async () => {
    const frames = await shortOf('deep')
    expect(frames).toEqual(
      Array.from({ length: deep - 1 }, (_, level) => {
        const path = Array(level + 1)
          .fill('0')
          .join('_')
        return [path, 'call', reader, reader, '0', '']
      }),
    )
  })

  it('a wide tree', async () => {
    expect(await shortOf('wide')).toEqual(
      Array.from({ length: wide }, (_, index) => [`${index}`, 'call', reader, coin, '0', '']),
    )
  })
})

it('both tracers give the same records', async () => {
  for (const [name, hash] of Object.entries(hashes)) {
    const one = await list(apps.both, hash)
    const other = await list(apps.parity, hash)
    expect(
      one.every((frame) => frame.transaction_hash === hash),
      name,
    ).toBe(true)
    // Words for rarer failures differ from tracer to tracer.
    const plain = (frames: Frame[]) => frames.map((frame) => ({ ...frame, error: !frame.error }))
    expect(plain(other), name).toEqual(plain(one))
  }
})

it('every number and text is the one of the node', async () => {
  type Node = { calls?: Node[]; [name: string]: unknown }
  const walk = (node: Node, path: string): [string, Node][] =>
    (node.calls ?? []).flatMap((child, index) => {
      const own = path === '' ? `${index}` : `${path}_${index}`
      return [[own, child], ...walk(child, own)] as [string, Node][]
    })
  for (const [name, hash] of Object.entries(hashes)) {
    const root = await anvil.call<Node>('debug_traceTransaction', [hash, { tracer: 'callTracer' }])
    const expected = walk(root, '').map(([trace_index, node]) => ({
      trace_index,
      gas: Number(node.gas),
      gas_used: Number(node.gasUsed),
      input: node.input,
      output: node.output ?? '0x',
      call_type: String(node.type).toLowerCase(),
      error: node.error ?? '',
    }))
    expect(await list(apps.both, hash), name).toMatchObject(expected)
  }
})

it('asks the node once', async () => {
  await list(apps.both, hashes.wide)
  proxies.both.exchanges.length = 0
  await list(apps.both, hashes.wide)
  const asked = proxies.both.exchanges.flat()
  expect(asked.filter((method) => /trace|Receipt/.test(method))).toEqual([])
})

it('where no node can trace, the answer is an error and not an empty list', async () => {
  const { status, json, headers } = await apps.none.query('ListInternalTransactions', {
    transaction_hash: hashes.pass as Hex,
  })
  expect({ status, reason: json.reason }).toEqual({ status: 503, reason: 'TRACES_UNAVAILABLE' })
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
})
