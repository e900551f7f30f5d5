import { describe, expect, it, onTestFinished } from 'vitest'
import { keyBytes, keyText, toHex } from '../../../devnet/polkadot/bytes.ts'
import type { PolkadotDevChainOptions } from '../../../devnet/polkadot/node.ts'
import { accountKey } from '../../../devnet/polkadot/spec.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { type Harness, startHarness } from './harness.ts'
import { connectRaw, type RawClient, type RawEvent } from './raw-client.ts'

const unit = 10n ** 12n

const start = async (options: PolkadotDevChainOptions = {}) => {
  const node = await startHarness(options)
  onTestFinished(node.stop)
  return { node, client: await connectRaw(node.node_url) }
}

describe('transactions, as the new JSON-RPC specification has them', () => {
  it('keeps offering a transaction until its client has seen enough', async () => {
    const { node, client } = await start({ finality: 3 })
    node.mine(4)
    const [kept, left] = [node.pay(1, 60, unit), node.pay(2, 61, unit)]
    const broadcast = (bytes: Uint8Array) =>
      client.ask<string>('transaction_v1_broadcast', toHex(bytes))
    const ids = [(await broadcast(kept)).result!, (await broadcast(left)).result!]
    const holds = (bytes: Buffer) => node.chain.best().extrinsics.some((one) => bytes.equals(one))
    node.mine(1)
    expect([holds(kept), holds(left)]).toEqual([true, true])
    expect(await client.ask('transaction_v1_stop', ids[1])).toEqual({ result: null })
    // A branch without them wins: the one that is still offered comes again.
    node.fork(1)
    expect([holds(kept), holds(left)]).toEqual([false, false])
    node.mine(1)
    expect([holds(kept), holds(left)]).toEqual([true, false])
    // What is not valid counts too, and nothing is said of it; a fifth one is not taken.
    const bad = Buffer.from(left)
    bad[60]! ^= 1
    for (let more = 3; more > 0; more--)
      expect((await broadcast(bad)).result).toEqual(expect.any(String))
    expect(await broadcast(left)).toEqual({ result: null })
    expect(await client.ask('transaction_v1_stop', ids[1])).toEqual({ code: -32_602 })
    // When the client goes, nothing is offered any more.
    client.socket.terminate()
    await waitFor('the node noticed', () => node.server.connections() === 0)
    node.fork(1)
    node.mine(1)
    expect(holds(kept)).toBe(false)
  })
})

describe('old blocks, as the new JSON-RPC specification has them', () => {
  const begin = async (): Promise<{ node: Harness; client: RawClient }> => {
    const { node, client } = await start({ finality: 2 })
    node.make({ extrinsics: [node.pay(1, 50, unit)] })
    node.mine(30)
    node.fork(1)
    return { node, client }
  }

  it('gives heights, headers, bodies, calls and storage', async () => {
    const { node, client } = await begin()
    const { chain } = node
    const paid = chain.at(1)!
    const results = async (...asked: [string, ...unknown[]][]) =>
      await Promise.all(
        asked.map(async ([name, ...params]) => {
          const { result } = await client.ask(`archive_v1_${name}`, ...params)
          return result
        }),
      )
    const top = chain.best().number - 1
    const siblings = chain.recent().above.filter(({ number }) => number === top)
    expect(siblings).toHaveLength(2)
    expect(
      await results(
        ['genesisHash'],
        ['finalizedHeight'],
        ['hashByHeight', 1],
        ['hashByHeight', top],
        ['hashByHeight', 9_999],
        ['header', paid.hash],
        ['body', paid.hash],
        ['header', `0x${'11'.repeat(32)}`],
        ['body', `0x${'11'.repeat(32)}`],
        ['call', `0x${'11'.repeat(32)}`, 'Core_version', '0x'],
        ['call', paid.hash, 'AccountNonceApi_account_nonce', toHex(node.account(1))],
        ['call', paid.hash, 'Nothing_here', '0x'],
      ),
    ).toEqual([
      chain.genesis,
      chain.final().number,
      [paid.hash],
      siblings.map(({ hash }) => hash),
      [],
      toHex(paid.header),
      paid.extrinsics.map(toHex),
      null,
      null,
      null,
      { success: true, value: '0x01000000' },
      { success: false, error: expect.stringContaining('Nothing_here') },
    ])
  })

  it('gives the storage of old blocks, from where one stopped', async () => {
    const { node, client } = await begin()
    const { hash } = node.chain.at(1)!
    const state = node.chain.stateOf(node.chain.at(1)!)!
    const prefix = toHex(keyBytes(accountKey(node.account(1)))).slice(0, 2 + 64)
    const look = async (items: unknown[], at = hash) => {
      const { result } = await client.ask<string>('archive_v1_storage', at, items, null)
      const isOver = ({ event }: RawEvent) => event !== 'storage'
      await waitFor('it is over', () => client.received(result!).some(isOver))
      return client.received(result!)
    }
    const all = await look([{ key: prefix, type: 'descendantsValues' }])
    const key = toHex(keyBytes(accountKey(node.account(50))))
    expect(all.find((one) => one.key === key)?.value).toBe(
      toHex(state.get(keyText(Buffer.from(key.slice(2), 'hex')))!),
    )
    expect(all.at(-1)).toEqual({ event: 'storageDone' })
    const start = all[4]!.key
    const rest = await look([{ key: prefix, type: 'descendantsValues', paginationStartKey: start }])
    expect(rest).toEqual(all.slice(5))
    expect(await look([{ key, type: 'hash' }], node.genesis_hash)).toEqual([
      { event: 'storageDone' },
    ])
    node.server.prune(20)
    expect(await look([{ key, type: 'hash' }])).toEqual([
      { event: 'storageError', error: expect.stringContaining('discarded') },
    ])
  })

  it('names its methods, answers batches, and reports unreadable requests', async () => {
    const { node, client } = await begin()
    const { result } = await client.ask<{ methods: string[] }>('rpc_methods')
    const groups = ['chainHead_v1_', 'chainSpec_v1_', 'transaction_v1_', 'archive_v1_']
    expect(
      groups.map((group) => result!.methods.filter((name) => name.startsWith(group)).length),
    ).toEqual([9, 3, 2, 8])
    expect(result!.methods).toContain('rpc_methods')
    expect(result!.methods).toContain('chain_subscribeFinalizedHeads')
    const answers = await Promise.all(
      ['chainName', 'genesisHash', 'properties'].map(
        async (name) => (await client.ask(`chainSpec_v1_${name}`)).result,
      ),
    )
    expect(answers).toEqual([node.chain.spec.name, node.genesis_hash, node.chain.spec.properties])
    const post = async (body: string) => {
      const answer = await fetch(node.node_url.replace('ws', 'http'), { method: 'POST', body })
      return await answer.text()
    }
    expect(JSON.parse(await post('{'))).toMatchObject({ id: null, error: { code: -32_700 } })
    const call = { jsonrpc: '2.0', method: 'archive_v1_finalizedHeight' }
    const batch = JSON.stringify([{ ...call, id: 1 }, call, { ...call, id: 'b' }])
    const height = node.chain.final().number
    expect(JSON.parse(await post(batch))).toEqual([
      { jsonrpc: '2.0', id: 1, result: height },
      { jsonrpc: '2.0', id: 'b', result: height },
    ])
    expect(await post(JSON.stringify(call))).toBe('')
  })
})
