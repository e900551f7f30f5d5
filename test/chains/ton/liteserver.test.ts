// Lite servers as nodes, with full verification: blocks are proved by signatures, and lies are refused and named.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { startLiteServer } from '../../../devnet/ton/lite-server.ts'
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'
import { placesOf } from '../../../src/app/chain-openers.ts'
import { loadConfig } from '../../../src/app/config/load.ts'
import { resolveChains } from '../../../src/app/config/resolve.ts'
import type { Chain } from '../../../src/chains/chain.ts'
import { describeChain } from '../../../src/chains/testing/conformance.ts'
import { createTonChain } from '../../../src/chains/ton/chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { addressOf, createPayer, fundPayers } from './ton-payers.ts'

const signal = AbortSignal.timeout(120_000)
const accountOf = (number: number): Buffer => {
  const made = Buffer.alloc(33, 0xa5)
  made[0] = 0
  made.writeUInt32BE(number, 29)
  return made
}

describeChain('of TON, on a lite server with full verification', async () => {
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, rounds: 2 })
  const payers = Array.from({ length: 10 }, (_, number) => createPayer(dev, number))
  await fundPayers(dev, payers)
  const lite = await startLiteServer(dev.chain, { globalId: -3 })
  const chain = createTonChain({
    upstreams: [{ url: `tcp://${lite.host}:${lite.port}`, key: lite.key }],
    verification: 'full',
    trusted: lite.trusted(),
    pollMs: 50,
  })
  return {
    chain,
    account: (number) => payers[number]?.bytes ?? accountOf(number),
    pay: async ({ from, to, value }) => {
      const payer = payers.find(({ bytes }) => bytes.equals(from))
      await payer!.pay(addressOf(to), value)
      await dev.mine(2)
    },
    mine: async (count) => void (await dev.mine(count)),
    setMode: async (mode) => lite.setMode(mode),
    stop: async () => {
      await chain.stop()
      await lite.stop()
      await dev.stop()
    },
  }
})

const start = async () => {
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, rounds: 2 })
  onTestFinished(dev.stop)
  dev.chain.setDepth(1)
  await dev.mine(3)
  const payee = addressOf(accountOf(7))
  await dev.fund(payee.toRawString(), 5_000_000_000n)
  await dev.mine(8)
  const lite = await startLiteServer(dev.chain, { globalId: -3 })
  onTestFinished(lite.stop)
  const node = { url: `tcp://${lite.host}:${lite.port}`, key: lite.key }
  const open = (trusted = lite.trusted()): Chain => {
    const chain = createTonChain({ upstreams: [node], verification: 'full', trusted, pollMs: 50 })
    onTestFinished(chain.stop)
    return chain
  }
  return { dev, lite, open, head: dev.chain.head().id.seqno }
}

it('follows the validators through key blocks and proves every block, transaction and balance', async () => {
  const { dev, open, head, lite } = await start()
  const chain = open()
  const shown: number[] = []
  const own = new AbortController()
  const first = (await chain.header(1, signal))!
  for await (const event of chain.follow(first, own.signal)) {
    if (event.kind !== 'blocks') throw new Error(event.kind)
    shown.push(...event.blocks.map(({ number }) => number))
    if (shown.at(-1) === head) break
  }
  expect(shown).toEqual(Array.from({ length: head - 1 }, (_, index) => index + 2))
  const { mode, anchor, checked, refused } = chain.status!().verification!
  expect({ mode, anchor, refused }).toEqual({ mode: 'full', anchor: 'key block 1', refused: {} })
  expect(checked.signatures).toBeGreaterThanOrEqual(head - 1)
  expect(checked.key_blocks).toBeGreaterThanOrEqual(Math.floor((head - 1) / 5))
  expect(checked.blocks).toBeGreaterThan(head)

  const at = (await chain.header(head, signal))!
  const query = [7, 8].map((number) => ({ address: accountOf(number), asset: chain.native }))
  const read = await chain.readBalances(query, at, signal)
  expect(read.map(({ balance }) => balance)).toEqual([
    dev.chain.account(addressOf(accountOf(7)).toRawString()).balance,
    0n,
  ])
  expect(read[0]!.balance).toBeGreaterThan(0n)
  expect(chain.status!().verification!.checked.balances).toBe(2)
  expect(chain.status!().upstreams![0]).toMatchObject({ transport: 'adnl', state: 'healthy' })
  // One call for the name of a masterchain block, one for each block and one for a proof.
  expect(lite.requests.get('lookupBlock')).toBeLessThanOrEqual(head + 1)
})

/** Changes one byte of an answer, counted from its end. */
const flipEnd = (answer: Buffer, fromEnd: number): Buffer => {
  const copy = Buffer.from(answer)
  copy[copy.length - fromEnd]! ^= 1
  return copy
}

it('refuses blocks, signatures and states that are false, and names them', async () => {
  const { open, head, lite } = await start()
  const lies: [kind: string, request: string, lie: (answer: Buffer) => Buffer, says: RegExp][] = [
    ['blocks', 'getBlock', (answer) => flipEnd(answer, 40), /does not have the hash of its file$/],
    ['signatures', 'getBlockProof', (answer) => flipEnd(answer, 200), /^masterchain block \d+: /],
  ]
  for (const [kind, request, lie, says] of lies) {
    const chain = open()
    lite.tamper((name, answer) => (name === request ? lie(answer) : answer))
    const following = chain.block(head - 1, {}, AbortSignal.timeout(30_000)).catch(() => undefined)
    await waitFor(kind, () => (chain.status!().verification!.refused[kind] ?? 0) > 0)
    expect(await following).toBeUndefined()
    expect(chain.status!().verification!.last_refusal).toMatch(says)
    lite.tamper(undefined)
    await chain.block(head - 1, {}, signal)
    await chain.stop()
  }

  const chain = open()
  const at = (await chain.header(head, signal))!
  lite.tamper((name, answer) => (name === 'getAccountState' ? flipEnd(answer, 60) : answer))
  const query = [{ address: accountOf(7), asset: chain.native }]
  await expect(chain.readBalances(query, at, signal)).rejects.toThrow()
  expect(chain.status!().verification!.refused.balances).toBeGreaterThan(0)
  expect(chain.status!().verification!.last_refusal).toMatch(/is not proved$/)
  lite.tamper(undefined)

  // Validators of another key block have signed nothing.
  const trusted = { ...lite.trusted(), root_hash: Buffer.alloc(32, 5) }
  await expect(open(trusted).block(head, {}, signal)).rejects.toThrow()
})

it('refuses full verification with nodes that give no proofs', () => {
  expect(() =>
    createTonChain({ upstreams: [{ url: 'http://127.0.0.1:1/api/v2' }], verification: 'full' }),
  ).toThrow('needs lite servers')
})

it('is found in a global config, with the key block to begin with', async () => {
  const { lite, head } = await start()
  const { root_hash, file_hash, seqno } = lite.trusted()
  const folder = await mkdtemp(join(tmpdir(), 'portolan-ton-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'global.config.json')
  const names = { root_hash: root_hash.toString('base64'), file_hash: file_hash.toString('base64') }
  const id = { '@type': 'pub.ed25519', key: lite.key.toString('base64') }
  await writeFile(
    file,
    JSON.stringify({
      liteservers: [{ ip: 0x7f000001, port: lite.port, id }],
      validator: { init_block: { workchain: -1, shard: -(2 ** 63), seqno, ...names } },
    }),
  )
  const overrides = {
    chains: { t: { networks: { mainnet: { verification: 'full', global_config: file } } } },
  }
  const config = resolveChains(loadConfig({ env: {}, cwd: folder, overrides }), {})
  const [place] = placesOf(config, {
    ...{ env: {}, clock: systemClock, log: silentLog },
    networks: { keep: () => undefined, notifySent: () => {} },
  })
  const chain = await place!.open()
  onTestFinished(chain.stop)
  expect((await chain.head(signal)).number).toBe(head)
  const { anchor, checked } = chain.status!().verification!
  expect({ anchor, isProved: checked.signatures! > 0 }).toEqual({
    anchor: 'key block 1',
    isProved: true,
  })
})
