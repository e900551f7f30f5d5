import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { createClient } from '../../client/src/index.ts'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import { evmFamily } from '../../src/chains/evm/family.ts'
import { silentLog } from '../../src/lib/log.ts'
import { connectionOf, layoutOf } from '../../src/storage/embedded/layout.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { ensurePartitionsBetween } from '../../src/storage/pg/partitions.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { assetIdOf, ensureAssets } from '../../src/storage/wallets/assets.ts'

/** The service with a local chain, and a wallet with many transfers. */
export type ConsoleService = {
  url: string
  pair: { api_key: string; api_secret: string }
  wallet_id: string
  stop(): Promise<void>
}

const startTimeoutMs = 120_000

/** Starts the service and fills the wallet by SQL: the chain would need hours for a million transfers. */
export async function startConsoleService(transfers: number): Promise<ConsoleService> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-bench-')))
  await chmod(dataDir, 0o711)
  const child = spawn(
    process.execPath,
    [
      join(import.meta.dirname, '../../bin/portolan.js'),
      ...['start', '--chains', 'c', '--no-traffic', '--data-dir', dataDir],
    ],
    {
      cwd: dataDir,
      env: { ...process.env, PORTOLAN_PORT: '0', PORTOLAN_LIMITS__PER_SECOND_LIMIT: '-1' },
      stdio: 'ignore',
    },
  )
  const ended = once(child, 'close')
  const stop = async () => {
    child.kill('SIGINT')
    await ended
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const { base_url, admin } = await Promise.race([
      readConnection(dataDir),
      ended.then(() => Promise.reject(new Error('the service ended'))),
    ])
    const { wallet_id } = await createClient({ base_url, ...admin! }).c.RegisterWallet({
      name: 'Many transfers',
      address: `0x${'ab'.repeat(20)}`,
    })
    await fill(dataDir, wallet_id, transfers)
    return { url: base_url, pair: admin!, wallet_id, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function readConnection(dataDir: string): Promise<ConnectionFile> {
  const deadline = performance.now() + startTimeoutMs
  for (;;) {
    const text = await readFile(join(dataDir, 'connection.json'), 'utf8').catch(() => undefined)
    if (text) return JSON.parse(text) as ConnectionFile
    if (performance.now() > deadline) throw new Error('the service did not start')
    await delay(200)
  }
}

/** One transfer a second, back from now. */
async function fill(dataDir: string, wallet_id: string, transfers: number): Promise<void> {
  const { db, stop } = openDatabase({
    connection: connectionOf(layoutOf(dataDir)),
    ...{ log: silentLog, statementTimeoutMs: 600_000 },
  })
  try {
    const now = new Date()
    await ensurePartitionsBetween(db, new Date(now.getTime() - transfers * 1000), now)
    const { native } = evmFamily
    const network_id = await ensureNetwork(db, {
      ...{ chain: 'c', network: 'mainnet', create_time: now },
    })
    // The service stores the asset with the first balance that it reads, which may be later.
    await ensureAssets(db, network_id, [native], now)
    const { numAffectedRows } = await sql`
      insert into transfer (wallet_id, block_time, block_number, ordinal, side, organization_id,
        network_id, address, transaction_hash, asset_id, "from", "to", value, transaction_fee,
        transfer_state)
      select ${wallet_id}::uuid, ${now}::timestamptz - i * interval '1 second', 0, i, 1,
        organization_id, ${network_id}::int2, decode(repeat('ab', 20), 'hex'),
        sha256(int4send(i)), ${assetIdOf(network_id, native)}::uuid, decode(repeat('cd', 20), 'hex'),
        decode(repeat('ab', 20), 'hex'), i * 1000000000000000::numeric, 21000000000000,
        'TRANSFER_STATE_SUCCESS'
      from generate_series(1, ${transfers}::int) i, wallet
      where wallet.wallet_id = ${wallet_id}`.execute(db)
    if (Number(numAffectedRows) !== transfers)
      throw new Error(`${numAffectedRows} of ${transfers} transfers were stored`)
    await sql`vacuum (analyze) transfer`.execute(db)
  } finally {
    await stop()
  }
}
