import { execFile, spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { freshFolder } from '../cli/portolan.ts'
import { startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const folder = await freshFolder()
const dist = join(folder, 'dist')
await run(process.execPath, [join(root, 'client/build/build.ts'), dist])
await mkdir(join(folder, 'node_modules/@portolan'), { recursive: true })
await symlink(dist, join(folder, 'node_modules/@portolan/client'))
const longWait = { timeout: 120_000 }

test('what npm would publish', longWait, async () => {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: dist })
  const [{ name, files }] = JSON.parse(stdout) as [{ name: string; files: { path: string }[] }]
  const paths = files.map(({ path }) => path)
  const modules = paths.filter((path) => path.endsWith('.js') && path !== 'index.js')
  expect(name).toBe('@portolan/client')
  expect(paths.filter((path) => !/^[\w-]+\.(?:d\.ts|js)$/.test(path)).sort()).toEqual([
    'LICENSE',
    'README.md',
    'examples/browser.html',
    'examples/wallets.mjs',
    'package.json',
  ])
  for (const path of modules) expect(paths).toContain(path.replace(/\.js$/, '.d.ts'))
  const manifest = JSON.parse(await readFile(join(dist, 'package.json'), 'utf8'))
  expect(manifest).toMatchObject({ version: '0.1.0', license: 'MIT', type: 'module' })
  for (const absent of ['private', 'dependencies', 'scripts'])
    expect(manifest).not.toHaveProperty(absent)
})

test('all of its code is under 10 KB, compressed', async () => {
  const names = (await readdir(dist)).filter((name) => name.endsWith('.js'))
  const texts = await Promise.all(names.map((name) => readFile(join(dist, name), 'utf8')))
  expect(names.length).toBeGreaterThan(5)
  expect(gzipSync(texts.join('\n')).length).toBeLessThan(10_000)
  for (const text of texts) expect(text).not.toMatch(/from '(?!\.\/[\w-]+\.js')/)
})

test('its types are self-contained', longWait, async () => {
  await writeFile(
    join(folder, 'use.mts'),
    `import { createClient, items, type Notification, verifyWebhook } from '@portolan/client'
const client = createClient({ base_url: '', api_key: '', api_secret: '' })
export const wallets: Promise<{ wallets: { wallet_id: string }[] }> = client.c.ListWallets({})
export const notification: Promise<Notification> = verifyWebhook({ secret: '', headers: {}, body: '' })
for await (const { value } of items(client.t.ListTransfers, { wallet_id: '' })) value.padStart(1)
// @ts-expect-error P has no such operation
client.p.GetAddress({ address: '' })
`,
  )
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022']
  const libraries = ['--lib', 'es2022,dom', '--types', '']
  await run(join(root, 'node_modules/.bin/tsc'), [...options, ...libraries, 'use.mts'], {
    cwd: folder,
  })
})

describe('its example', async () => {
  const service = await startTestApp({ chains: createScriptedChains() })
  const { member } = await service.createTenant()

  test.each([process.execPath, 'node', 'bun'])('runs in %s', longWait, async (program) => {
    if (spawnSync(program, ['--version']).status !== 0)
      return console.warn(`${program} is not here: the client was not tried in it`)
    await writeFile(
      join(folder, 'wallets.mjs'),
      await readFile(join(dist, 'examples/wallets.mjs'), 'utf8'),
    )
    const { stdout } = await run(program, ['wallets.mjs'], {
      cwd: folder,
      env: {
        // The Node of the machine rather than the project's.
        PATH: process.env.PATH?.split(':')
          .filter((place) => !place.includes('node_modules'))
          .join(':'),
        PORTOLAN_URL: service.base_url,
        API_KEY: member.api_key,
        API_SECRET: member.api_secret,
      },
    })
    expect(stdout).toMatch(/^registered (\S+)\n(?:example \S+\n)*example \1\n/)
  })
})
