import { copyFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type EvmDevChain, startEvmDevChain } from '../../../devnet/evm/dev-chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'

type Header = { hash: string; number: string; parentHash: string; timestamp: string }
type State = {
  accounts: Record<string, { nonce: number; balance: string }>
  blocks: { header: { number: string; timestamp: string } }[]
  best_block_number: number
}

const folders: string[] = []
const freshFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portolan-dev-chain-'))
  folders.push(folder)
  return folder
}
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

const start = (directory: string) => startEvmDevChain({ directory, blockTimeMs: 60_000 })
const read = (chain: EvmDevChain, block: string) =>
  chain.call<Header>('eth_getBlockByNumber', [block, false])
const balanceAt = (chain: EvmDevChain, block: string) =>
  chain.call<string>('eth_getBalance', [chain.faucet_address, block])
const genesisBlocks = async (file: string) => {
  const { blocks } = JSON.parse(await readFile(file, 'utf8')) as State
  return blocks.filter(({ header }) => Number(header.number) === 0)
}

/** Ends a chain as a crash of the machine would. */
const kill = async (chain: EvmDevChain, directory: string) => {
  const pid = Number(await readFile(join(directory, 'anvil.pid'), 'utf8'))
  process.kill(pid, 'SIGKILL')
  await chain.stop()
}

describe('a local EVM chain that is started again', { timeout: 180_000 }, () => {
  test('stays the same chain, with the present time and the states of its last blocks', async () => {
    const directory = await freshFolder()
    let chain = await start(directory)
    const genesis = await read(chain, 'earliest')
    await chain.call('anvil_mine', ['0x5', '0x1'])
    await chain.fund(chain.faucet_address, 5n)
    await waitFor('it is mined', async () => Number((await read(chain, 'latest')).number) > 5)
    await chain.setClock()
    const head = await read(chain, 'latest')
    const earlier = await balanceAt(chain, '0x4')
    for (let restart = 1; restart <= 3; restart++) {
      await chain.stop()
      chain = await start(directory)
      expect(await read(chain, 'earliest')).toEqual(genesis)
      expect(await read(chain, '0x0')).toEqual(genesis)
      expect(await read(chain, head.number)).toEqual(head)
      expect(await balanceAt(chain, '0x4')).toBe(earlier)
      const before = await read(chain, 'latest')
      await chain.call('evm_mine')
      const next = await read(chain, 'latest')
      expect(next.parentHash).toBe(before.hash)
      expect(Number(next.timestamp)).toBeGreaterThanOrEqual(Number(before.timestamp))
      expect(Math.abs(Date.now() / 1000 - Number(next.timestamp))).toBeLessThan(30)
      expect(await genesisBlocks(join(directory, 'state.json'))).toHaveLength(1)
    }
    await chain.stop()
  })

  test('has its blocks after a crash, even one in the middle of writing them', async () => {
    const directory = await freshFolder()
    let chain = await start(directory)
    const genesis = await read(chain, '0x0')
    await chain.call('anvil_mine', ['0x5', '0x1'])
    const head = await read(chain, 'latest')
    const file = join(directory, 'state.json')
    const isKept = async () =>
      (await readFile(file, 'utf8').catch(() => '')).includes('"best_block_number":5')
    await waitFor('the blocks are on disk', isKept, { timeoutMs: 60_000 })
    await kill(chain, directory)
    await copyFile(file, join(directory, 'state.next.json'))
    await truncate(join(directory, 'state.next.json'), 2_000)
    chain = await start(directory)
    expect(await read(chain, '0x0')).toEqual(genesis)
    expect(await read(chain, head.number)).toEqual(head)
    await chain.stop()
  })

  test('of the OP stack keeps its old blocks and transactions over stops and kills', async () => {
    const directory = await freshFolder()
    // As chain q of the embedded mode.
    const open = () =>
      startEvmDevChain({ directory, blockTimeMs: 60_000, chainId: 901, isRollup: true })
    let chain = await open()
    const hash = String(await chain.fund(chain.faucet_address, 5n))
    const deposit = await chain.call<string>('eth_sendTransaction', [
      {
        ...{ from: chain.traffic_address, to: chain.faucet_address, value: '0x5', gas: '0x5208' },
        ...{ type: '0x7e', sourceHash: `0x${'22'.repeat(32)}`, mint: '0x9', isSystemTx: false },
      },
    ])
    await waitFor(
      'both are mined',
      async () => (await chain.call('eth_getTransactionReceipt', [deposit])) !== null,
    )
    const head = await read(chain, 'latest')
    const facts = async () => ({
      chain_id: await chain.call('eth_chainId'),
      genesis: await read(chain, 'earliest'),
      first: await read(chain, '0x1'),
      head: await read(chain, head.number),
      transactions: await Promise.all(
        [hash, deposit].map((one) => chain.call('eth_getTransactionByHash', [one])),
      ),
      receipts: await Promise.all(
        [hash, deposit].map((one) => chain.call('eth_getTransactionReceipt', [one])),
      ),
    })
    const before = await facts()
    expect(before.chain_id).toBe('0x385')
    expect(before.transactions).not.toContain(null)
    const file = join(directory, 'state.json')
    const isKept = async () => {
      const text = await readFile(file, 'utf8').catch(() => '{}')
      const { best_block_number = -1 } = JSON.parse(text) as Partial<State>
      return Number(best_block_number) >= Number(head.number)
    }
    await waitFor('they are on disk', isKept, { timeoutMs: 60_000 })
    for (const end of [kill, (one: EvmDevChain) => one.stop(), kill]) {
      await end(chain, directory)
      chain = await open()
      expect(await facts()).toEqual(before)
      const last = await read(chain, 'latest')
      await chain.call('evm_mine')
      expect((await read(chain, 'latest')).parentHash).toBe(last.hash)
    }
    await chain.stop()
  })

  test('starts from the state before one whose accounts are ahead of its blocks', async () => {
    const directory = await freshFolder()
    const file = join(directory, 'state.json')
    let chain = await start(directory)
    const address = `0x${'d'.repeat(40)}`
    const balance = () => chain.call<string>('eth_getBalance', [address, 'latest'])
    const pay = async (count: number) => {
      await chain.fund(address, 1n)
      await waitFor('it is mined', async () => BigInt(await balance()) === BigInt(count))
    }
    await pay(1)
    const head = await read(chain, 'latest')
    await chain.stop()
    const before = JSON.parse(await readFile(file, 'utf8')) as State
    chain = await start(directory)
    await pay(2)
    await chain.stop()
    const after = JSON.parse(await readFile(file, 'utf8')) as State
    // As anvil writes it when a block is mined while it writes: old blocks, new accounts.
    await writeFile(file, JSON.stringify({ ...before, accounts: after.accounts }))
    await writeFile(join(directory, 'state.previous.json'), JSON.stringify(before))
    chain = await start(directory)
    expect(await read(chain, 'latest')).toEqual(head)
    expect(await balance()).toBe('0x1')
    await chain.stop()
  })

  test('has its own genesis again where earlier starts have stored others', async () => {
    const directory = await freshFolder()
    let chain = await start(directory)
    const genesis = await read(chain, '0x0')
    await chain.call('anvil_mine', ['0x3', '0x1'])
    const head = await read(chain, 'latest')
    await chain.stop()
    // As starts without a fixed time of the genesis block have left it.
    await rm(join(directory, 'genesis.json'))
    const file = join(directory, 'state.json')
    const state = JSON.parse(await readFile(file, 'utf8')) as State
    const [own] = await genesisBlocks(file)
    for (const later of [60, 90, 120, 150]) {
      const timestamp = `0x${(Number(own!.header.timestamp) + later).toString(16)}`
      state.blocks.push({ ...own!, header: { ...own!.header, timestamp } })
    }
    await writeFile(file, JSON.stringify(state))
    for (let restart = 1; restart <= 2; restart++) {
      chain = await start(directory)
      expect(await read(chain, '0x0')).toEqual(genesis)
      expect(await read(chain, head.number)).toEqual(head)
      await chain.stop()
    }
    expect(await genesisBlocks(file)).toHaveLength(1)
  })

  test('is refused with a sentence when its blocks cannot be read', async () => {
    const directory = await freshFolder()
    await writeFile(join(directory, 'state.json'), '{"blocks": [')
    await expect(start(directory)).rejects.toThrow(
      `${join(directory, 'state.json')} is damaged. Start with --reset to begin anew.`,
    )
  })
})
