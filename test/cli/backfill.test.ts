import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { callRpc } from '../../devnet/anvil/rpc.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { freshFolder, main, runCommand, startService } from './portolan.ts'

// util-linux; the one of macOS takes other arguments.
const hasTerminal = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux')
const address = `0x${'b'.repeat(40)}`
// Each look runs a command.
const longWait = { timeoutMs: 120_000 }

it('history of an address that was registered late appears beside the live tracker', {
  timeout: 300_000,
}, async () => {
  const dataDir = join(await freshFolder(), 'data')
  const { connection } = await startService(dataDir, {
    args: ['--chains', 'c', '--no-traffic'],
  })
  const run = async (...args: string[]) => {
    const outcome = await runCommand(args, { dataDir })
    // Without a terminal, a line occasionally shows the progress.
    expect(outcome.stderr).toMatch(/^(\[#*\.*\] \d+ %, block .* left\n)*$/)
    expect(outcome.code).toBe(0)
    return outcome.stdout
  }
  const call = async (operation: string, request: object) =>
    JSON.parse(await run('call', 'c', operation, JSON.stringify(request)))
  for (const amount of ['1001', '1002', '1003']) await run('faucet', 'c', address, amount)
  const node = <result>(method: string, params: unknown[] = []) =>
    callRpc<result>(connection.chains.c!.node_url!, method, params, 120_000)
  // A history that takes long enough to be watched.
  await node('anvil_mine', ['0x40'])
  const head = Number(await node('eth_blockNumber'))
  await waitFor('all of it was looked at before any address is registered', async () => {
    const { chains } = await (await fetch(new URL('/status', connection.admin_url))).json()
    return chains.c.tracking.block_number >= head
  })

  const { wallet_id } = await call('RegisterWallet', { name: 'late', address, confirmation: 1 })
  const values = async (): Promise<string[]> => {
    const { transfers } = await call('ListTransfers', { wallet_id, page_size: 100 })
    return transfers.map(({ value }: { value: string }) => value)
  }
  await run('faucet', 'c', address, '2001')
  await waitFor('the tracker sees the new one', async () => (await values()).length === 1, longWait)
  expect(await values()).toEqual(['2001'])

  expect(await run('backfill', 'c', '--from', '1')).toMatch(
    /^Blocks 1 to [\d,]+: 3 new transfers\.\n$/,
  )
  expect(await values()).toEqual(['2001', '1003', '1002', '1001'])
  // Once more adds nothing, and the tracker continues.
  expect(await run('backfill', 'c', '--from', '2')).toContain(': 0 new transfers.')
  await run('faucet', 'c', address, '2002')
  await waitFor(
    'the tracker sees the next one',
    async () => (await values()).length === 5,
    longWait,
  )

  if (!hasTerminal) return
  const command = `exec ${process.execPath} ${main} backfill c --from 3 --data-dir ${dataDir}`
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    // With CI set, output is a log even on a terminal.
    env: { ...process.env, TERM: 'xterm', CI: '' },
  })
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    screen += chunk
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  expect(screen).toMatch(
    /\[#*\.*\] \d+ %, block [\d,]+ of [\d,]+, [\d,]+ transfers, [\d,]+ blocks\/s, .* left/,
  )
})
