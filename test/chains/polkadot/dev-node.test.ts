import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { executeBlock, timeOf } from '../../../devnet/polkadot/author.ts'
import { openChain } from '../../../devnet/polkadot/chain.ts'
import { developmentSigners } from '../../../devnet/polkadot/development-accounts.ts'
import {
  type PolkadotDevChainOptions,
  startPolkadotDevChain,
} from '../../../devnet/polkadot/node.ts'
import { loadChainSpec } from '../../../devnet/polkadot/spec.ts'
import { testRuntimes } from './runtimes.ts'

const start = async (options: PolkadotDevChainOptions = {}) => {
  const node = await startPolkadotDevChain({ manual: true, ...options })
  let isStopped = false
  const stop = async () => {
    if (!isStopped) await node.stop()
    isStopped = true
  }
  onTestFinished(stop)
  return { ...node, stop }
}

const folder = async () => {
  const directory = await mkdtemp(join(tmpdir(), 'portolan-dot-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

describe('the Polkadot dev node', () => {
  it('begins with the published first block of Rococo Asset Hub', async () => {
    const chain = openChain({ spec: await loadChainSpec(), now: () => 1 })
    onTestFinished(chain.close)
    // As the chain's registries print it.
    expect(chain.genesis).toBe('0x7c34d42fc815d392057c78b49f2755c753440ccd38bcb0405b3bcfb601d08734')
  })

  it('says what to install where the package with its chain is missing', async () => {
    const load = (name: string) => import(name.replace('connect-known-chains', 'no-such-package'))
    await expect(loadChainSpec(load)).rejects.toThrow(
      /needs the npm package @substrate\/connect-known-chains \(GPL-3\.0\).*npm install --no-save @substrate\/connect-known-chains@\d/,
    )
    const broken = () => Promise.reject(new SyntaxError('broken'))
    await expect(loadChainSpec(broken)).rejects.toThrow('broken')
  })

  it.each(testRuntimes())(
    'makes blocks that the runtime accepts as a whole, and refuses after one flipped bit: $name',
    async ({ spec }) => {
      const node = await start({ ...(spec && { spec }) })
      const to = node.address(node.signer(50).account)
      const alice = developmentSigners().Alice
      const pay = (signer: typeof alice, call: string) =>
        node.sign({
          signer,
          pallet: 'Balances',
          call,
          value: { dest: { type: 'Id', value: to }, value: 10n ** 12n },
        })
      const plans = [
        [],
        [pay(node.signer(1), node.transferCall)],
        [pay(alice, 'transfer_keep_alive')],
      ]
      for (const extrinsics of plans) {
        const parent = node.chain.best()
        const block = node.make({ extrinsics })
        expect(block.extrinsics).toHaveLength(2 + extrinsics.length)
        const code = node.chain.codeOf(parent.state)
        executeBlock(code, parent, block)
        const { header } = block
        for (let byte = 0; byte < header.length; byte += spec ? 29 : 7) {
          const flipped = Buffer.from(header)
          flipped[byte]! ^= 1 << (byte % 8)
          expect(() => executeBlock(code, parent, { ...block, header: flipped })).toThrow()
        }
        const body = block.extrinsics.map((one) => Uint8Array.from(one))
        body.at(-1)![20]! ^= 1
        expect(() => executeBlock(code, parent, { ...block, extrinsics: body })).toThrow()
      }
    },
  )

  it.each(testRuntimes())(
    'stays at the time of the clock, however fast its blocks come: $name',
    async ({ spec }) => {
      const live = { manual: false, blockTimeMs: 3_600_000, finality: 5 }
      const node = await start({ ...live, ...(spec && { spec }) })
      const started = Date.now()
      node.mine(30)
      node.fork(2)
      await node.fund(node.address(node.signer(70).account), 10n ** 12n)
      const time = timeOf(node.chain.best().state)
      expect(time).toBeGreaterThanOrEqual(started)
      expect(time).toBeLessThanOrEqual(Date.now() + 1_000)
    },
  )

  it('is the same chain for the same seed, and another one for another', async () => {
    const play = async (seed: number) => {
      const node = await start({ seed })
      await node.fund(node.address(node.signer(60).account), 10n ** 12n)
      node.mine(3)
      return [node.genesis_hash, node.chain.best().hash]
    }
    const [one, again, other] = [await play(1), await play(1), await play(2)]
    expect(again).toEqual(one)
    for (const [at, fact] of other!.entries()) expect(fact).not.toBe(one![at])
  })

  it('continues with the same chain after a restart, forks and old states included', async () => {
    const directory = await folder()
    const first = await start({ directory, finality: 3 })
    const account = first.signer(61).account
    await first.fund(first.address(account), 5n * 10n ** 12n)
    first.mine(40)
    first.fork(2)
    const shown = first.chain.best()
    const facts = () => [shown.number, shown.hash, first.chain.final().hash]
    const before = facts()
    const old = first.chain.at(1)!
    await first.stop()
    const second = await start({ directory, finality: 3 })
    const { chain } = second
    expect([chain.best().number, chain.best().hash, chain.final().hash]).toEqual(before)
    expect(chain.best().state.root(0)).toEqual(shown.state.root(0))
    expect(chain.at(1)?.hash).toBe(old.hash)
    expect(chain.stateOf(chain.at(1)!)?.next('')).toBe(shown.state.next(''))
    second.mine(5)
    expect(chain.best().number).toBe(shown.number + 5)
    await second.stop()
    await expect(start({ directory, seed: 9 })).rejects.toThrow('another chain')
  })

  it('drops states beyond its history, and reports it', async () => {
    const node = await start({ history: 64 })
    node.mine(200)
    expect(node.chain.stateOf(node.chain.at(100)!)).toBeUndefined()
    expect(node.chain.stateOf(node.chain.at(150)!)?.next('')).toEqual(expect.any(String))
    const answer = await fetch(node.node_url.replace('ws', 'http'), {
      method: 'POST',
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'state_getStorage',
        params: ['0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7'].concat(
          node.chain.at(100)!.hash,
        ),
      }),
    })
    expect(await answer.json()).toMatchObject({
      error: { code: 4003, message: expect.stringContaining('discarded') },
    })
  })

  it('refuses a bad signature and a transaction that was there before', async () => {
    const node = await start()
    const good = node.sign({
      signer: node.signer(2),
      pallet: 'System',
      call: 'remark',
      value: { remark: Uint8Array.of(1) },
    })
    const bad = Buffer.from(good)
    bad[60]! ^= 1
    expect(() => node.chain.pool.submit(bad)).toThrow('Invalid Transaction')
    node.chain.pool.submit(good)
    expect(() => node.chain.pool.submit(good)).toThrow('Already Imported')
    node.mine()
    expect(() => node.chain.pool.submit(good)).toThrow('Invalid Transaction')
  })
})
