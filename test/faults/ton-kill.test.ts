import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { internal } from '@ton/core'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import { insertOrganization } from '../../src/storage/access/organizations.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { insertAddresses } from '../../src/storage/wallets/addresses.ts'
import { insertWallet } from '../../src/storage/wallets/wallets.ts'
import { createPayer, fundPayers } from '../chains/ton/ton-payers.ts'
import { bundledProgram } from '../helpers/bundle.ts'
import { freshDatabase } from '../helpers/database.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'

const kills = 2

it('a service that is killed again and again has every transfer on TON once, and every balance', async () => {
  const random = createRandom(5)
  const database = await freshDatabase()
  const { db } = database
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, rounds: 2 })
  const payers = Array.from({ length: 4 }, (_, number) => createPayer(dev, number))
  await fundPayers(dev, payers)

  const create_time = new Date()
  const organization_id = randomUUID()
  const network_id = await ensureNetwork(db, { chain: 't', network: 'mainnet', create_time })
  await insertOrganization(db, { organization_id, name: 'n', domain: 'killed', create_time })
  const wallet_id = randomUUID()
  const wallet = { wallet_id, organization_id, network_id, name: 'w', confirmation: 1, create_time }
  await insertWallet(db, wallet)
  const addresses = payers.map(({ bytes }) => bytes)
  await insertAddresses(db, { organization_id, network_id }, { wallet_id, addresses, create_time })

  const data_dir = await mkdtemp(join(tmpdir(), 'portolan-ton-kill-'))
  const { host, user, database: name } = database.connection
  const overrides = JSON.stringify({
    data_dir,
    database: { url: `postgres:///${name}?host=${encodeURIComponent(host)}&user=${user}` },
    security: { master_key: randomBytes(32).toString('hex') },
    server: { port: 0 },
    chains: { t: { networks: { mainnet: { upstreams: [{ url: dev.node_url }] } } } },
  })
  const start = async () => {
    const program = await bundledProgram('test/faults/ton-kill-writer.ts')
    const child = spawn(process.execPath, [program, overrides], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    return child
  }
  const stored = async () => (await findCursor(db, network_id))?.block_number ?? -1

  let child = await start()
  try {
    await waitFor('tracking begins', async () => (await stored()) > 0, { timeoutMs: 60_000 })
    const begun = await stored()
    for (let kill = 0; kill <= kills; kill++) {
      for (let round = 0; round < 8; round++) {
        for (const payer of payers) {
          const to = payers[Math.floor(random() * payers.length)]!.address
          const value = BigInt(1 + Math.floor(random() * 1e6))
          await payer.send({ message: internal({ to, value, bounce: false }), mode: 3 })
        }
        dev.chain.setDepth(Math.floor(random() * 3))
        await dev.mine(1)
      }
      const aim = (await stored()) + 1 + Math.floor(random() * 6)
      await waitFor('the service continues', async () => (await stored()) >= aim, {
        ...{ timeoutMs: 60_000, everyMs: 3 },
      })
      if (kill === kills) break
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      child = await start()
    }
    await dev.mine(4)
    const head = dev.chain.head().id.seqno
    await waitFor('the service has everything', async () => (await stored()) >= head, {
      timeoutMs: 60_000,
    })

    const wanted: string[] = []
    for (let seqno = begun + 1; seqno <= head; seqno++)
      for (const { wire } of dev.chain.store.transactionsByMaster(seqno)) {
        const { account, in_msg, out_msgs } = JSON.parse(wire)
        if (!payers.some(({ text }) => text === account)) continue
        if (in_msg.source) wanted.push(`1 ${account} ${in_msg.hash}`)
        for (const { hash } of out_msgs) wanted.push(`0 ${account} ${hash}`)
      }
    const { rows } = await sql<{ side: number; address: Buffer; transfer_hash: Buffer }>`
      select side, address, transfer_hash from transfer where network_id = ${network_id}`.execute(
      db,
    )
    const seen = rows.map(
      ({ side, address, transfer_hash }) =>
        `${side} 0:${address.toString('hex', 1)} ${transfer_hash.toString('base64')}`,
    )
    expect(seen.toSorted()).toEqual(wanted.toSorted())
    expect(wanted.length).toBeGreaterThan(100)

    await waitFor(
      'the balances are those of the chain',
      async () => {
        const { rows: balances } = await sql<{ address: Buffer; balance: string }>`
          select address, balance::text from balance where wallet_id = ${wallet_id}`.execute(db)
        return payers.every(({ bytes, text }) =>
          balances.some(
            ({ address, balance }) =>
              address.equals(bytes) && BigInt(balance) === dev.chain.account(text).balance,
          ),
        )
      },
      { timeoutMs: 60_000 },
    )
  } finally {
    child.kill('SIGKILL')
    await dev.stop()
    await rm(data_dir, { recursive: true, force: true })
  }
}, 240_000)
