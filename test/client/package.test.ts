import { execFile, spawnSync } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
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
// As npm would publish it, in an empty project.
const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: dist })
const [archive] = JSON.parse(packed.stdout) as [
  { name: string; filename: string; files: { path: string }[] },
]
await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
await run('npm', ['install', '--offline', `./${archive.filename}`], { cwd: folder })
const longWait = { timeout: 120_000 }

test('what npm would publish', async () => {
  const { name, files } = archive
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

test('publint finds nothing', longWait, async () => {
  const publint = join(root, 'node_modules/.bin/publint')
  const { stdout } = await run(publint, ['run', dist, '--strict', '--pack', 'false'])
  expect(stdout).toContain('All good!')
})

const use = `import { createClient, items, type Notification, verifyWebhook } from '@portolan/client'
const client = createClient({ base_url: '', api_key: '', api_secret: '' })
export const wallets: Promise<{ wallets: { wallet_id: string }[] }> = client.c.ListWallets({})
export const notification: Promise<Notification> = verifyWebhook({ secret: '', headers: {}, body: '' })
export async function values(): Promise<void> {
  for await (const { value } of items(client.t.ListTransfers, { wallet_id: '' })) value.padStart(1)
}
// @ts-expect-error P has no such operation
client.p.GetAddress({ address: '' })
`

// The ways in which a project can resolve it: ES modules and CommonJS of Node, and bundlers.
test.each([
  ['use.mts', 'nodenext', 'nodenext'],
  ['use.cts', 'nodenext', 'nodenext'],
  ['use.ts', 'esnext', 'bundler'],
])('its types are self-contained: %s, %s, %s', longWait, async (name, module, resolution) => {
  await writeFile(join(folder, name), use)
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom']
  const modes = ['--module', module, '--moduleResolution', resolution, '--types', '']
  // The expected error fails when an import of the types does not resolve, which would make them `any`.
  const check = ['--skipLibCheck', '--ignoreConfig']
  await run(join(root, 'node_modules/.bin/tsc'), [...options, ...modes, ...check, name], {
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
