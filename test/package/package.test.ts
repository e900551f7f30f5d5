import { globSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { freshFolder, portolan, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { packPackage, root, unpackPackage } from './installation.ts'

const folder = await freshFolder()
const { archive, files } = await packPackage(folder)
const project = join(folder, 'project')
const own = await unpackPackage(archive, project)
const program = join(own, 'bin/portolan.js')

test('the package has the built service, its data and the console, and no sources', () => {
  for (const file of [
    ...['bin/portolan.js', 'src/main.js', 'console/dist/index.html'],
    ...['LICENSE', 'README.md', 'CHANGELOG.md', 'portolan.example.yaml'],
  ])
    expect(files).toContain(file)
  // What the sources read beside code.
  const data = globSync('src/**/*.{css,js,json,sql}', { cwd: root })
  expect(data.length).toBeGreaterThan(10)
  for (const file of data) expect(files).toContain(file)
  expect(files.some((file) => /^src\/storage\/migrations\/\d+.*\.sql$/.test(file))).toBe(true)
  const ours = files.filter((file) => !file.startsWith('node_modules/'))
  expect(ours.filter((file) => /\.tsx?$|\.test\.|testing|devnet/.test(file))).toEqual([])
  expect(files.filter((file) => /\.(?:d\.ts|ts|map)$/.test(file))).toEqual([])
})

test('its manifest has what the service loads, and none of the tools', async () => {
  const published = JSON.parse(await readFile(join(own, 'package.json'), 'utf8'))
  expect(published).toMatchObject({
    ...{ name: 'portolan', version: manifest.version, engines: { node: '>=26' } },
    dependencies: manifest.dependencies,
  })
  // Overrides of the repository do not apply where it is installed: its copy has no such dependencies.
  expect(published.bundleDependencies).toEqual(['@mysten/sui'])
  for (const name of ['gql.tada', 'graphql', 'typescript'])
    expect(published.dependencies).not.toHaveProperty(name)
  const sui = JSON.parse(await readFile(join(own, 'node_modules/@mysten/sui/package.json'), 'utf8'))
  expect(sui).not.toHaveProperty('dependencies')
  for (const absent of ['private', 'scripts', 'devDependencies', 'workspaces', 'overrides'])
    expect(published).not.toHaveProperty(absent)
})

test('no module refers to a source file by its address', async () => {
  const modules = globSync('src/**/*.js', { cwd: own })
  expect(modules.length).toBeGreaterThan(300)
  const found: string[] = []
  for (const path of modules) {
    const text = await readFile(join(own, path), 'utf8')
    if (/['"`][./][^'"`\n]*\.tsx?['"`]/.test(text)) found.push(path)
  }
  // Which says that local chains are not installed.
  expect(found).toEqual(['src/app/embedded/local-chains.js'])
})

test('it starts outside of the repository, serves, and loads nothing of the local chains', async () => {
  const dataDir = join(folder, '.data')
  const trace = join(folder, 'modules')
  // Nodes of every family, so that the code of each is loaded; none of them answers.
  const chains = Object.entries({ c: 'evm', q: 'evm', t: 'ton', s: 'sui', p: 'polkadot' }).map(
    ([tag, kind]) => {
      const scheme = kind === 'polkadot' ? 'ws' : 'http'
      const upstreams = [{ name: 'absent', url: `${scheme}://127.0.0.1:1` }]
      return [tag, { kind, networks: { mainnet: { upstreams } } }]
    },
  )
  const config = join(folder, 'portolan.yaml')
  await writeFile(config, stringify({ chains: Object.fromEntries(chains) }))
  const service = await startService(dataDir, {
    ...{ program, cwd: project, args: ['--config', config] },
    env: { TRACE_FILE: trace, PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' },
    node: ['--import', join(import.meta.dirname, '../cli/trace-modules.ts')],
  })
  const { base_url } = service.connection
  await waitFor('ready', async () => (await fetch(`${base_url}/ready`)).ok)
  const call = ['call', 'admin', 'GetOrganizationByDomain', '{"domain":"demo"}']
  const { stdout } = await portolan([...call, '--config', config], {
    program,
    dataDir,
    cwd: project,
  })
  expect(JSON.parse(stdout)).toMatchObject({ organization: { domain: 'demo' } })
  const page = await fetch(base_url, { headers: { accept: 'text/html' } })
  expect(await page.text()).toContain('<script')
  // Without draining.
  await service.stop('SIGINT')
  const loaded = (await readFile(trace, 'utf8')).split('\n')
  expect(loaded).toContain(pathToFileURL(join(own, 'src/main.js')).href)
  expect(loaded.filter((url) => /devnet|@ton\/sandbox|hdkd|viem/.test(url))).toEqual([])
})

test('it says its version, and that local chains are not installed', async () => {
  expect(await portolan(['--version'], { program, cwd: project })).toEqual({
    ...{ code: 0, stderr: '', stdout: `${manifest.version}\n` },
  })
  const asked = await portolan(['start', '--chains', 'c'], { program, cwd: project })
  expect(asked).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Local chains are not installed; /),
  })
})
