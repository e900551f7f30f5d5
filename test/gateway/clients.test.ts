import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Contract, ContractFactory, JsonRpcProvider, Wallet } from 'ethers'
import {
  createPublicClient,
  createWalletClient,
  getAddress,
  type Hex,
  http,
  parseEther,
  toEventSelector,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { afterAll, describe, expect, it } from 'vitest'
import { Web3 } from 'web3'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { castPath } from '../../devnet/anvil/cast.ts'
import { startTestGateway } from './gateway.ts'

// Clients as their users have them: they get only the address of the gateway.

const run = promisify(execFile)
// Blocks come by themselves, as on a real chain: clients wait for the next one.
const anvil = await startAnvil({ args: ['--block-time', '1'] })
afterAll(anvil.stop)
const gateway = await startTestGateway([anvil.url])
const url = `${gateway.base_url}/c/mainnet/v1/${gateway.tenant.member.api_key}`

// The accounts that every anvil begins with.
const keys: readonly Hex[] = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
  '0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6',
]
const receiver = '0x00000000000000000000000000000000000000ff'

const abi = [
  {
    type: 'function',
    name: 'answer',
    inputs: [],
    outputs: [{ type: 'uint256', name: '' }],
    stateMutability: 'view',
  },
  { type: 'function', name: 'touch', inputs: [], outputs: [], stateMutability: 'nonpayable' },
  { type: 'event', name: 'Answered', inputs: [{ type: 'uint256', name: 'value', indexed: false }] },
] as const
const topic = toEventSelector('Answered(uint256)')
// Whatever it is called with: emits Answered(42) and returns 42.
const runtime = `602a6000527f${topic.slice(2)}60206000a160206000f3`
const bytecode: Hex = `0x6030600c60003960306000f3${runtime}`

describe('unchanged clients', () => {
  it('viem reads, writes, deploys, calls and finds logs', async () => {
    const account = privateKeyToAccount(keys[0]!)
    const transport = http(url)
    const reader = createPublicClient({ chain: foundry, transport, pollingInterval: 200 })
    const writer = createWalletClient({ chain: foundry, transport, account })
    expect(await reader.getChainId()).toBe(31337)
    const before = await reader.getBalance({ address: receiver })
    const value = parseEther('1')
    const sent = await writer.sendTransaction({ to: receiver, value })
    const { status } = await reader.waitForTransactionReceipt({ hash: sent })
    expect(status).toBe('success')
    expect(await reader.getBalance({ address: receiver })).toBe(before + value)

    const deployed = await writer.deployContract({ abi, bytecode })
    const { contractAddress } = await reader.waitForTransactionReceipt({ hash: deployed })
    const address = contractAddress!
    expect(await reader.getCode({ address })).toBe(`0x${runtime}`)
    expect(await reader.readContract({ address, abi, functionName: 'answer' })).toBe(42n)
    const touched = await writer.writeContract({ address, abi, functionName: 'touch' })
    const receipt = await reader.waitForTransactionReceipt({ hash: touched })
    const logs = await reader.getContractEvents({ address, abi, fromBlock: 0n })
    expect(logs.map(({ args, blockNumber }) => [args, blockNumber])).toEqual([
      [{ value: 42n }, receipt.blockNumber],
    ])
    const block = await reader.getBlock({ blockNumber: receipt.blockNumber })
    expect(block.hash).toBe(receipt.blockHash)
    const batched = createPublicClient({ chain: foundry, transport: http(url, { batch: true }) })
    const numbers = await Promise.all(
      [0n, 1n, 2n].map((blockNumber) => batched.getBlock({ blockNumber })),
    )
    expect(numbers.map(({ number }) => number)).toEqual([0n, 1n, 2n])
  })

  it('ethers reads, writes, deploys, calls and finds logs', async () => {
    const provider = new JsonRpcProvider(url, undefined, {
      polling: true,
      pollingInterval: 200,
      // Its own cache shows the balance of a quarter of a second ago.
      cacheTimeout: -1,
    })
    const wallet = new Wallet(keys[1]!, provider)
    expect((await provider.getNetwork()).chainId).toBe(31337n)
    const before = await provider.getBalance(receiver)
    const sent = await wallet.sendTransaction({ to: receiver, value: 5n })
    expect((await sent.wait())?.status).toBe(1)
    expect(await provider.getBalance(receiver)).toBe(before + 5n)

    const factory = new ContractFactory(abi as never, bytecode, wallet)
    const contract = (await (await factory.deploy()).waitForDeployment()) as Contract
    expect(await contract.answer!()).toBe(42n)
    await (await contract.touch!()).wait()
    const events = await contract.queryFilter('Answered', 0)
    expect(events.length).toBe(1)
    provider.destroy()
  })

  it('web3.js reads, writes, deploys, calls and finds logs', async () => {
    const web3 = new Web3(url)
    const { address } = web3.eth.accounts.wallet.add(keys[2]!)[0]!
    expect(await web3.eth.getChainId()).toBe(31337n)
    const before = await web3.eth.getBalance(receiver)
    await web3.eth.sendTransaction({ from: address, to: receiver, value: 7n, gas: 100_000n })
    expect(await web3.eth.getBalance(receiver)).toBe(before + 7n)

    const draft = new web3.eth.Contract(abi)
    const contract = await draft.deploy({ data: bytecode }).send({ from: address, gas: '500000' })
    expect(await contract.methods.answer().call()).toBe(42n)
    await contract.methods.touch().send({ from: address, gas: '100000' })
    const events = await contract.getPastEvents('Answered', { fromBlock: 0 })
    expect(events.length).toBe(1)
  })

  it('cast reads, writes, deploys, calls and finds logs', { timeout: 240_000 }, async () => {
    const program = await castPath()
    const cast = async (command: string, ...args: string[]) => {
      const { stdout } = await run(program, [command, '--rpc-url', url, ...args], {
        timeout: 50_000,
      })
      return stdout.trim()
    }
    expect(await cast('chain-id')).toBe('31337')
    const key = ['--private-key', keys[3]!]
    const deployed = JSON.parse(await cast('send', ...key, '--json', '--create', bytecode))
    const address = getAddress(deployed.contractAddress)
    expect(await cast('call', address, 'answer()(uint256)')).toBe('42')
    await cast('send', ...key, address, 'touch()')
    const logs = JSON.parse(await cast('logs', '--json', '--from-block', '0', '--address', address))
    expect(logs.length).toBe(1)
    expect(Number(await cast('block-number'))).toBeGreaterThan(0)
  })
})
