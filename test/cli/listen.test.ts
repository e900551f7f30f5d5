import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { freshFolder, runCommand, startPortolan, startService } from './portolan.ts'

test('a wrong call is explained', async () => {
  expect(await runCommand(['listen', 'q'])).toMatchObject({
    code: 2,
    stderr: 'q has no wallets.\n',
  })
  expect((await runCommand(['listen', 'Base'])).stderr).toContain('is not the name of a chain')
  expect((await runCommand(['listen', '--answer', '99'])).stderr).toContain('from 200 to 599')
})

test('what happens on a local chain is delivered, verified and printed', async () => {
  const dataDir = join(await freshFolder(), 'data')
  const service = await startService(dataDir, { args: ['--chains', 'c', '--no-traffic'] })
  const listening = startPortolan(['listen', 'c', '--port', '0'], { dataDir })
  const says = (text: string) =>
    waitFor(`"${text}" in ${listening.output()}`, () => listening.output().includes(text), {
      timeoutMs: 30_000,
    })
  await says('Registered webhook')
  const webhook_id = /webhook ([0-9a-f-]{36})/.exec(listening.output())?.[1]
  const call = (operation: string, request: object) =>
    runCommand(['call', 'c', operation, JSON.stringify(request)], { dataDir })
  await call('SendTestWebhook', { webhook_id })
  await says('verified  test notification')
  const address = `0x${'ab'.repeat(20)}`
  await call('RegisterWallet', { name: 'deposits', address })
  expect(await runCommand(['faucet', 'c', address, '12345'], { dataDir })).toMatchObject({
    code: 0,
  })
  await says('    12345 ASSET_TYPE_C')
  // A slow machine sees two blocks at once, so that the first notification may have two confirmations.
  expect(listening.output()).toMatch(
    /#\d+ {2}verified {2}0x[0-9a-f]{64}, \d confirmations?\n {4}12345 ASSET_TYPE_C/,
  )
  const { code, stderr } = await listening.stop()
  expect(code).toBe(0)
  expect(stderr).toContain(' 0 refused, 0 numbers missing.')
  const { stdout } = await call('ListWebhooks', {})
  // The demo has one of its own.
  expect(stdout).not.toContain(webhook_id)
  await service.stop()
})
