import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { freshDatabase } from '../helpers/database.ts'
import { waitFor } from '../helpers/wait-for.ts'

const program = join(import.meta.dirname, 'tracker-process.ts')
const longWait = { timeoutMs: 60_000 }

test('another process tracks on within 5 s after a kill, again and again', async () => {
  const { db, connection } = await freshDatabase()
  const anvil = await startAnvil({ args: ['--block-time', '1'] })
  onTestFinished(anvil.stop)
  const network = 'takeover'
  const network_id = await ensureNetwork(db, { chain: 'c', network, create_time: new Date() })
  const start = (): ChildProcess => {
    const options = { connection, urls: [anvil.url], network_id, network }
    const child = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: 'inherit' })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const block = async () => (await findCursor(db, network_id))?.block_number ?? -1
  const holder = async () =>
    (await db.selectFrom('lease').select('holder').executeTakeFirst())?.holder

  let leader = start()
  await waitFor('it tracks', async () => (await block()) > 0, longWait)
  for (let round = 0; round < 3; round++) {
    const waiting = start()
    // It has to load its code before it can wait.
    await delay(6_000)
    const before = await holder()
    const ended = once(leader, 'exit')
    leader.kill('SIGKILL')
    const killed = performance.now()
    await ended
    const last = await block()
    await waitFor('another one stores blocks', async () => (await block()) > last, longWait)
    expect(performance.now() - killed).toBeLessThan(5_000)
    expect(await holder()).not.toBe(before)
    leader = waiting
  }
}, 180_000)
