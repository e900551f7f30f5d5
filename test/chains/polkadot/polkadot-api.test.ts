import { getWsProvider } from '@polkadot-api/ws-provider'
import { createClient, type PolkadotClient } from 'polkadot-api'
import { createWsClient } from 'polkadot-api/ws'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  developmentSigners,
  signerForClients,
} from '../../../devnet/polkadot/development-accounts.ts'
import type { PolkadotDevChainOptions } from '../../../devnet/polkadot/node.ts'
import { serveChain } from '../../../devnet/polkadot/server.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { type Harness, readBalanceOf, startHarness } from './harness.ts'
import { testRuntimes } from './runtimes.ts'

const unit = 10n ** 12n

const start = async (options: PolkadotDevChainOptions = {}) => {
  const node = await startHarness(options)
  onTestFinished(node.stop)
  // Its pages are short, so that the client must ask to continue.
  const server = await serveChain(node.chain, { limits: { page: 10 } })
  onTestFinished(server.stop)
  const asked: string[] = []
  server.tamper((method) => void asked.push(method))
  // Without the layer that makes older methods do where a node has no others.
  const client = createClient(getWsProvider(server.url))
  onTestFinished(client.destroy)
  return { node, server, client, asked }
}
/** What the client believes to be the chain, from its final block to its best one. */
const watchBest = (client: PolkadotClient) => {
  const shown: string[][] = []
  const subscription = client.bestBlocks$.subscribe((blocks) =>
    shown.push(blocks.map(({ hash }) => hash).reverse()),
  )
  onTestFinished(() => subscription.unsubscribe())
  return shown
}
/** What account 50 has, as the client reads it. */
const freeOf = async (node: Harness, client: PolkadotClient, options: { at?: string } = {}) => {
  const { Account } = client.getUnsafeApi().query.System!
  const found = await Account!.getValue(node.address(node.account(50)), options)
  return (found as { data: { free: bigint } }).data.free
}
/**
 * Makes a block whenever the client asks for nothing more. It never finds its transaction when a block is pruned before it has
 * read it, so on a busy machine it must not be one block in so many milliseconds.
 */
const mineInStep = (node: Harness, asked: readonly string[]) => {
  let [known, quiet] = [0, 0]
  const timer = setInterval(() => {
    quiet = asked.length === known ? quiet + 1 : 0
    known = asked.length
    if (quiet > 0 && quiet % 3 === 0) node.mine(1)
  }, 15)
  onTestFinished(() => clearInterval(timer))
}
const chainOf = ({ chain }: Harness) => {
  const [from, to] = [chain.final().number, chain.best().number]
  return Array.from({ length: to - from + 1 }, (_, at) => chain.at(from + at)!.hash)
}

describe('polkadot-api, the client itself, on the Polkadot dev node', () => {
  it('reads the final block, the chain specification, constants and accounts', async () => {
    const { node, client, asked } = await start()
    node.mine(3)
    node.make({ extrinsics: [node.pay(1, 50, 5n * unit)] })
    const { hash, number } = node.chain.final()
    expect(await client.getFinalizedBlock()).toMatchObject({ hash, number })
    expect(await client.getChainSpecData()).toEqual({
      name: node.chain.spec.name,
      genesisHash: node.genesis_hash,
      properties: node.chain.spec.properties,
    })
    const api = client.getUnsafeApi()
    const account = await api.query.System!.Account!.getValue(node.address(node.account(50)))
    expect(account).toMatchObject({ nonce: 0, data: { free: 5n * unit, reserved: 0n } })
    expect(await api.constants.System!.SS58Prefix!()).toBe(node.ss58_prefix)
    expect((await api.query.System!.Account!.getEntries()).length).toBeGreaterThan(15)
    const before = { at: node.chain.at(number - 1)!.hash }
    expect(await freeOf(node, client, before)).toBe(0n)
    // A block that no full node holds any more comes from the archive.
    const first = node.chain.at(1)!
    node.mine(40)
    await waitFor('the archive is asked', async () => {
      expect((await client.getBlockHeader(first.hash)).number).toBe(1)
      return asked.includes('archive_v1_header')
    })
    for (const name of ['follow', 'header', 'storage', 'call', 'continue', 'unpin'])
      expect(asked).toContain(`chainHead_v1_${name}`)
    expect(asked.filter((method) => /^(chain|state|author|system)_/.test(method))).toEqual([])
  })

  it('follows the best blocks through a fork, to finality', async () => {
    const { node, client } = await start({ finality: 3 })
    node.mine(5)
    const shown = watchBest(client)
    const finals: string[] = []
    const subscription = client.finalizedBlock$.subscribe(({ hash }) => finals.push(hash))
    onTestFinished(() => subscription.unsubscribe())
    const agree = async (chain = chainOf(node)) =>
      await waitFor('the client has the same chain', () => `${shown.at(-1)}` === `${chain}`)
    await agree()
    const from = node.chain.final().number
    node.make({ extrinsics: [node.pay(1, 50, unit)] })
    node.mine(1)
    const lost = chainOf(node)
    await agree()
    node.fork(2, [node.pay(2, 50, 2n * unit)])
    await agree()
    expect(chainOf(node)).not.toContain(lost.at(-1))
    const read = async (at: string) => await freeOf(node, client, { at })
    expect([await read('best'), await read('finalized')]).toEqual([2n * unit, 0n])
    node.mine(6)
    await agree()
    const last = node.chain.final().number
    await waitFor('all are final', () => finals.at(-1) === node.chain.final().hash)
    expect(finals).toEqual(
      Array.from({ length: last - from + 1 }, (_, at) => node.chain.at(from + at)!.hash),
    )
    expect(await read('finalized')).toBe(2n * unit)
  })

  it.each(testRuntimes())(
    'signs a transfer, submits it, and watches it through a fork to finality: $name',
    async ({ spec, isModern }) => {
      const {
        node,
        client,
        asked: requests,
      } = await start({
        ...{ finality: 2, ...(spec && { spec }) },
      })
      node.mine(3)
      const { Alice, Bob } = developmentSigners()
      const api = client.getUnsafeApi()
      const transfer = (to: number, value: bigint) =>
        api.tx.Balances!.transfer_keep_alive!({
          dest: { type: 'Id', value: node.address(node.account(to)) },
          value,
        })
      // What the older runtime answers to that, the client does not understand any more.
      const asked =
        isModern && (await transfer(60, unit).getEstimatedFees(node.address(Alice.account)))
      if (isModern) expect(asked).toBeGreaterThan(0n)
      const received: { type: string; [field: string]: unknown }[] = []
      const isIn = () => received.some((one) => one.type === 'txBestBlocksState' && one.found)
      const watching = new Promise<void>((resolve, reject) => {
        transfer(60, unit)
          .signSubmitAndWatch(signerForClients(Alice))
          .subscribe({ next: (one) => received.push(one), error: reject, complete: resolve })
      })
      await waitFor('it is in the pool', () => node.chain.pool.size() === 1)
      const first = node.mine(1)
      await waitFor('it is in a block', isIn)
      // That block is lost; the client keeps the transaction alive and it comes into another one.
      node.fork(1)
      await waitFor('it is out again', () => received.at(-1)?.found === false)
      const second = node.mine(1)
      await waitFor('it is in again', () => received.at(-1)?.found === true)
      node.mine(2)
      await watching
      expect(received.slice(0, 2).map(({ type }) => type)).toEqual(['signed', 'broadcasted'])
      // Whether it also says that it is in no block yet depends on which is quicker.
      const states = received.slice(received.findIndex(({ found }) => found))
      expect(states.map((one) => (one.block as { hash: string } | undefined)?.hash)).toEqual([
        first.hash,
        undefined,
        second.hash,
        second.hash,
      ])
      expect(received.at(-1)!.type).toBe('finalized')
      expect(received.at(-1)).toMatchObject({ ok: true, block: { number: second.number } })
      expect(readBalanceOf(node, node.account(60))).toBe(unit)

      // Without watching; a transfer that fails is final too, and says why.
      mineInStep(node, requests)
      const signer = signerForClients(Bob)
      const paid = await transfer(61, unit).signAndSubmit(signer)
      expect([paid.ok, readBalanceOf(node, node.account(61))]).toEqual([true, unit])
      const failed = await transfer(62, 10n ** 30n).signAndSubmit(signer)
      expect(failed).toMatchObject({
        ok: false,
        dispatchError: { type: isModern ? 'Arithmetic' : 'Module' },
      })
    },
  )

  it('begins anew when the node stops it, and after its connection broke', async () => {
    const { node, server, client, asked } = await start({ finality: 2 })
    node.mine(5)
    const shown = watchBest(client)
    const agree = async () =>
      await waitFor('the client has the same chain', () => `${shown.at(-1)}` === `${chainOf(node)}`)
    await agree()
    for (const disturb of [server.stopFollows, server.dropConnections]) {
      disturb()
      node.fork(1)
      node.make({ extrinsics: [node.pay(1, 50, unit)] })
      node.mine(3)
      await agree()
    }
    expect(await freeOf(node, client, { at: 'best' })).toBe(2n * unit)
    expect(asked.filter((method) => method === 'chainHead_v1_follow')).toHaveLength(3)
  })

  it('reads by the new runtime after an upgrade', async () => {
    const { node, client } = await start({ upgradeAt: 4 })
    node.mine(2)
    const api = client.getUnsafeApi()
    const version = async () => {
      const { spec_version } = (await api.constants.System!.Version!()) as { spec_version: number }
      return spec_version
    }
    await client.getFinalizedBlock()
    expect(await version()).toBe(900)
    const runtimes: number[] = []
    node.mine(4)
    await waitFor('the runtime has changed', async () => {
      runtimes.push(await version())
      return runtimes.at(-1) === 901
    })
    node.make({ extrinsics: [node.pay(1, 50, unit)] })
    await waitFor('the transfer is seen', async () => (await freeOf(node, client)) === unit)
  })

  it('works as its own package connects it', async () => {
    const node = await startHarness()
    onTestFinished(node.stop)
    node.mine(2)
    const client = createWsClient(node.node_url)
    onTestFinished(client.destroy)
    const { hash } = node.chain.final()
    expect((await client.getFinalizedBlock()).hash).toBe(hash)
  })
})
