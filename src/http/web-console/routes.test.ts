import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { Pool } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { startServer } from '../server.ts'
import { consolePolicy, consoleRoutes, openConsole } from './routes.ts'

const page = `<!doctype html><base href="/"><script type="module" src="./assets/app-1a2b.js"></script>`
const script = 'console.log("hello")'.repeat(50)

async function start({ basePath = '', isBuilt = true } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'portolan-console-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  if (isBuilt) {
    await mkdir(join(directory, 'assets'))
    await writeFile(join(directory, 'index.html'), page)
    await writeFile(join(directory, 'favicon.svg'), '<svg/>')
    await writeFile(join(directory, 'secret.map'), '{}')
    await writeFile(join(directory, 'assets/app-1a2b.js'), script)
    await writeFile(join(directory, 'assets/app-1a2b.js.br'), brotliCompressSync(script))
  }
  const finished: string[] = []
  const server = await startServer({
    ...{ host: '127.0.0.1', port: 0, log: silentLog, basePath },
    routes: consoleRoutes(openConsole({ directory, basePath })),
    onFinished: ({ route, status }) => void finished.push(`${route} ${status}`),
  })
  onTestFinished(server.stop)
  const pool = new Pool(`http://127.0.0.1:${server.address.port}`)
  onTestFinished(() => pool.destroy())
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const answer = await pool.request({ path, method: method as 'GET', headers })
    const bytes = Buffer.from(await answer.body.arrayBuffer())
    return { status: answer.statusCode, headers: answer.headers, bytes, text: `${bytes}` }
  }
  return { get, finished, directory }
}

const html = { accept: 'text/html,application/xhtml+xml' }

test('serves the page at its root and at every address of the console', async () => {
  const { get } = await start()
  for (const path of ['/', '/wallets', '/wallets/c/1234?tab=transfers']) {
    const { status, headers, text } = await get(path, html)
    expect([path, status, headers['content-type']]).toEqual([path, 200, 'text/html; charset=utf-8'])
    expect(text).toContain('<script type="module" src="/assets/app-1a2b.js">')
    expect(headers['cache-control']).toBe('no-cache')
    expect(headers['content-security-policy']).toBe(consolePolicy)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
    })
  }
  expect(consolePolicy).not.toMatch(/unsafe|\*|https?:/)
})

test('serves files with long caching where their names have a hash, compressed where accepted', async () => {
  const { get } = await start()
  const path = '/assets/app-1a2b.js'
  const plain = await get(path)
  expect([plain.text, plain.headers['cache-control']]).toEqual([
    script,
    'public, max-age=31536000, immutable',
  ])
  const br = await get(path, { 'accept-encoding': 'gzip, br' })
  expect([br.headers['content-encoding'], br.bytes]).toEqual(['br', brotliCompressSync(script)])
  const gzip = await get(path, { 'accept-encoding': 'gzip, br;q=0' })
  expect(gzip.headers['content-encoding']).toBe('gzip')
  const again = await get(path, { 'if-none-match': `${plain.headers.etag}` })
  expect([again.status, again.text]).toEqual([304, ''])
  const icon = await get('/favicon.svg')
  expect([icon.status, icon.headers['cache-control']]).toEqual([200, 'no-cache'])
})

test('answers 404 to everything else, and reads no other file', async () => {
  const { get, finished } = await start()
  for (const path of [
    ...['/assets/missing.js', '/secret.map', '/v1/nothing', '/docs/nothing', '/status/x'],
    ...['/assets/../../package.json', '/%2e%2e/package.json', '/assets/..%2findex.html'],
  ])
    expect([path, (await get(path, html)).status]).toEqual([path, 404])
  // A program that asks for no page gets none.
  expect((await get('/wallets', { accept: 'application/json' })).status).toBe(404)
  expect((await get('/', {})).status).toBe(200)
  expect((await get('/', html, 'POST')).status).toBe(405)
  expect(finished).toContain('none 404')
})

test('knows the base path', async () => {
  const { get } = await start({ basePath: '/portolan' })
  const { status, text } = await get('/portolan/wallets', html)
  expect([status, text]).toEqual([
    200,
    page.replace('href="/"', 'href="/portolan/"').replace('"./', '"/portolan/'),
  ])
  expect((await get('/portolan', html)).status).toBe(200)
  expect((await get('/portolan/assets/app-1a2b.js')).status).toBe(200)
  for (const path of ['/', '/wallets', '/portolanx', '/assets/app-1a2b.js'])
    expect([path, (await get(path, html)).status]).toEqual([path, 404])
})

test('says how to build it where it is not built, and serves it once it is', async () => {
  const { get, directory } = await start({ isBuilt: false })
  const { status, headers, text } = await get('/', html)
  expect([status, headers['content-security-policy']]).toEqual([404, consolePolicy])
  expect(text).toContain('npm run build --workspace console')
  await writeFile(join(directory, 'index.html'), page)
  expect((await get('/', html)).status).toBe(200)
})
