import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'

const someone = `0:${'ab'.repeat(32)}`

type Facts = { node_url: string; faucet_address: string; faucet_key: string }

/** Starts the node as a process of its own. */
const spawnNode = async (directory: string) => {
  const main = new URL('../../../devnet/ton/main.ts', import.meta.url).pathname
  const args = [main, '--directory', directory, '--block-time-ms', '20', '--seed', '7']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const facts = JSON.parse(String(line)) as Facts
  const call = async (method: string, params: object = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(`${facts.node_url}/jsonRPC`, { method: 'POST', body })
    return ((await response.json()) as { result: never }).result
  }
  const fund = async (address: string, amount: string): Promise<string> => {
    const url = facts.node_url.replace('/api/v2', '/dev/fund')
    const body = JSON.stringify({ address, amount })
    const response = await fetch(url, { method: 'POST', body })
    return ((await response.json()) as { result: { transaction_hash: string } }).result
      .transaction_hash
  }
  const end = async (signal: NodeJS.Signals) => {
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  return { facts, call, fund, end }
}

describe('the TON development chain', () => {
  it('is the same chain for the same seed', async () => {
    const heads = await Promise.all(
      [3, 3, 4].map(async (seed) => {
        const dev = await startTonDevChain({ seed, blockTimeMs: 0, startTime: 1_800_000_000 })
        await dev.fund(someone, 1_000n)
        await dev.mine(3)
        const { root_hash } = dev.chain.head().id
        await dev.stop()
        return [dev.faucet_address, root_hash.toString('hex')]
      }),
    )
    expect(heads[0]).toEqual(heads[1])
    expect(heads[0]).not.toEqual(heads[2])
  })

  it('has everything that it showed after it was killed', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'ton-dev-'))
    try {
      let known: { seqno: number; root_hash: string } | undefined
      let balance = 0n
      for (let life = 0; life < 3; life++) {
        const node = await spawnNode(directory)
        const shown: { balance: string } = await node.call('getAddressInformation', {
          address: someone,
        })
        expect(BigInt(shown.balance)).toBe(balance)
        if (known) {
          const place = { workchain: -1, shard: '-9223372036854775808', seqno: known.seqno }
          expect(await node.call('lookupBlock', place)).toMatchObject(known)
        }
        for (let count = 0; count < 3; count++) {
          expect(await node.fund(someone, '1000')).toMatch(/^[0-9a-f]{64}$/)
          const { balance: now }: { balance: string } = await node.call('getAddressInformation', {
            address: someone,
          })
          balance = BigInt(now)
        }
        const info: { last: { seqno: number; root_hash: string } } =
          await node.call('getMasterchainInfo')
        known = { seqno: info.last.seqno, root_hash: info.last.root_hash }
        await node.end('SIGKILL')
      }
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
