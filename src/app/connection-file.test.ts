import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { removeConnectionFile, writeConnectionFile } from './connection-file.ts'

const folder = async () => {
  const path = await mkdtemp(join(tmpdir(), 'portolan-connection-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

const content = {
  base_url: 'http://127.0.0.1:1',
  ws_url: 'ws://127.0.0.1:1',
  chains: { c: { network: 'mainnet', variant: 'C', kind: 'evm' } },
}

describe('the connection file', () => {
  it('has the given content and belongs to its owner alone', async () => {
    const dataDir = await folder()
    const path = await writeConnectionFile(dataDir, content)
    expect(path).toBe(join(dataDir, 'connection.json'))
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(content)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDir)).toEqual(['connection.json'])
  })

  it('replaces one that others could read', async () => {
    const dataDir = await folder()
    await writeFile(join(dataDir, 'connection.json'), 'old', { mode: 0o644 })
    const path = await writeConnectionFile(dataDir, content)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readFile(path, 'utf8')).not.toContain('old')
  })

  it('is never seen half written', async () => {
    const dataDir = await folder()
    const path = await writeConnectionFile(dataDir, content)
    const large = { ...content, base_url: `http://127.0.0.1/${'x'.repeat(200_000)}` }
    const writing = (async () => {
      for (let round = 0; round < 20; round++)
        await writeConnectionFile(dataDir, round % 2 ? content : large)
    })()
    let over = false
    void writing.then(() => {
      over = true
    })
    while (!over) expect(JSON.parse(await readFile(path, 'utf8'))).toHaveProperty('chains')
    await writing
  })

  it('is removed, and may be gone already', async () => {
    const dataDir = await folder()
    await writeConnectionFile(dataDir, content)
    await removeConnectionFile(dataDir)
    await removeConnectionFile(dataDir)
    expect(await readdir(dataDir)).toEqual([])
  })

  it('is left where another process has written it since', async () => {
    const dataDir = await folder()
    await writeConnectionFile(dataDir, { pid: 1, ...content })
    await writeConnectionFile(dataDir, { pid: 2, ...content })
    await removeConnectionFile(dataDir, 1)
    expect(await readdir(dataDir)).toEqual(['connection.json'])
    await removeConnectionFile(dataDir, 2)
    expect(await readdir(dataDir)).toEqual([])
  })
})
