import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { copyInitializedDataDir } from '../helpers/initialized-data-dir.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { databasePid, freshFolder, main } from './portolan.ts'

const env = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  TERM: 'xterm',
}

// util-linux; the one of macOS takes other arguments.
const hasTerminal = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux')

test.skipIf(!hasTerminal)(
  'a person sees progress, then a banner, and stops with Ctrl-C',
  { timeout: 120_000 },
  async () => {
    const dataDir = join(await freshFolder(), 'data')
    const command = `exec ${process.execPath} ${main} start --port 0 --chains c --data-dir ${dataDir}`
    const child = spawn('script', ['-qfec', command, '/dev/null'], {
      env,
    })
    let screen = ''
    let secrets: string[] = []
    child.stdout.setEncoding('utf8').on('data', async (chunk: string) => {
      screen += chunk
      if (!screen.includes('Ctrl-C stops') || secrets.length > 0) return
      secrets = ['pending']
      const { admin, member } = JSON.parse(await readFile(join(dataDir, 'connection.json'), 'utf8'))
      secrets = [admin.api_key, admin.api_secret, member.api_key, member.api_secret]
      child.stdin.write('\u0003')
    })
    const [code] = await once(child, 'close')
    expect(code).toBe(0)
    expect(screen).toMatch(
      /Starting Portolan [\s\S]*Starting the local chains …[\s\S]*Creating the database …[\s\S]*ready in [\d.]+ s[\s\S]*anvil: EVM/,
    )
    expect(screen).toContain(`keys and secrets are in ${dataDir}/connection.json`)
    expect(screen).toContain(`npx portolan --data-dir ${dataDir} call c ListWallets`)
    expect(screen).toMatch(/stopped/)
    expect(secrets).toHaveLength(4)
    for (const secret of secrets) expect(screen).not.toContain(secret)
  },
)

test.skipIf(!hasTerminal)('stops when its terminal is closed', { timeout: 120_000 }, async () => {
  const dataDir = join(await freshFolder(), 'data')
  await copyInitializedDataDir(dataDir)
  const command = `exec ${process.execPath} ${main} start --port 0 --chains none --data-dir ${dataDir}`
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    env,
  })
  const file = join(dataDir, 'connection.json')
  await waitFor('the service is ready', () => existsSync(file))
  child.kill('SIGKILL')
  await waitFor('the service has stopped', async () => {
    const isListed = existsSync(file)
    return !isListed && (await databasePid(dataDir)) === undefined
  })
})
