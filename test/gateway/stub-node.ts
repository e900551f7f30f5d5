import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, onTestFinished, TestRunner } from 'vitest'

/** A call as the node got it. */
export type StubCall = { id: number | string; method: string; params: unknown[] }

/** Raw JSON of a result, or an error object. */
export type StubAnswer = { result: string } | { error: string }

/** A node whose answers a test decides; singles and batches over HTTP. */
export type StubNode = {
  url: string
  /** Every call but the pool's own probes, in order. */
  calls: StubCall[]
  head: number
  /** The branch that blocks above this height belong to. */
  fork: { above: number; name: string }
  /** Answers before anything else; undefined falls through to the chain. */
  answer: (call: StubCall) => StubAnswer | undefined | Promise<StubAnswer | undefined>
  stop(): Promise<void>
}

/** The hash of a block of the stub's chain. */
export const stubHash = (number: number, branch = 'a'): string =>
  `0x${Buffer.from(branch).toString('hex').padStart(8, '0')}${number.toString(16).padStart(56, '0')}`

const probes = new Set(['eth_chainId', 'eth_syncing', 'eth_subscribe', 'web3_clientVersion'])

/** Starts a node; stopped after the test or the file. */
export async function startStubNode(chainId = 1): Promise<StubNode> {
  const hashAt = (number: number) =>
    stubHash(number, number > node.fork.above ? node.fork.name : 'a')
  const block = (number: number) =>
    number > node.head
      ? 'null'
      : `{"number":"0x${number.toString(16)}","hash":"${hashAt(number)}","parentHash":"${hashAt(number - 1)}","nonce":"0x0000000000000042","timestamp":"0x${(1000 + number).toString(16)}","transactions":[]}`
  const byHash = (hash: string) => {
    const number = Number.parseInt(hash.slice(10), 16)
    return hashAt(number) === hash ? block(number) : 'null'
  }
  const chain = ({ method, params }: StubCall): StubAnswer => {
    if (method === 'eth_chainId') return { result: `"0x${chainId.toString(16)}"` }
    if (method === 'net_version') return { result: `"${chainId}"` }
    if (method === 'eth_syncing') return { result: 'false' }
    if (method === 'eth_blockNumber') return { result: `"0x${node.head.toString(16)}"` }
    if (method === 'eth_getBlockByHash') return { result: byHash(String(params[0])) }
    if (method === 'eth_getBlockByNumber') {
      const [at] = params
      return { result: block(at === 'latest' ? node.head : Number.parseInt(String(at), 16)) }
    }
    return { error: `{"code":-32601,"message":"the method ${method} does not exist"}` }
  }
  const respond = async (call: StubCall) => {
    const isProbe =
      probes.has(call.method) ||
      (call.method === 'eth_getBlockByNumber' && call.params[0] === 'latest')
    if (!isProbe) node.calls.push(call)
    const answer = (await node.answer(call)) ?? chain(call)
    const [name, text] = 'result' in answer ? ['result', answer.result] : ['error', answer.error]
    return `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"${name}":${text}}`
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', async () => {
      const body: StubCall | StubCall[] = JSON.parse(Buffer.concat(chunks).toString())
      const text = Array.isArray(body)
        ? `[${(await Promise.all(body.map(respond))).join(',')}]`
        : await respond(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  const node: StubNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    head: 1000,
    fork: { above: Number.POSITIVE_INFINITY, name: 'a' },
    answer: () => undefined,
    stop,
  }
  if (TestRunner.getCurrentTest()) onTestFinished(stop)
  else afterAll(stop)
  return node
}
