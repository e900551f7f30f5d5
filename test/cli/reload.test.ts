import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import { loadConfig } from '../../src/app/config/load.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { freshFolder, runCommand, startService } from './portolan.ts'

const slow = { timeout: 240_000 }

/** A service in a process of its own, with a configuration file and one chain. */
const start = async () => {
  const folder = await freshFolder()
  const dataDir = join(folder, 'data')
  const node = await startStubNode(101)
  const file = join(folder, 'portolan.yaml')
  const yaml = `# The chains of this test.
chains:
  # Kept as it is.
  one:
    variant: Q
    networks: { mainnet: { upstreams: [{ url: "${node.url}" }] } }
logging:
  level: info
`
  await writeFile(file, yaml, { mode: 0o600 })
  const service = await startService(dataDir, {
    args: ['--config', file],
    env: { PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' },
  })
  const { admin_url } = service.connection
  const status = async () => (await (await fetch(`${admin_url}/status`)).json()) as Status
  const run = (...args: string[]) => runCommand([...args, '--config', file], { dataDir })
  return { service, file, yaml, node, status, run }
}

type Status = {
  chains: Record<string, { networks: string[]; nodes: Record<string, { upstreams: unknown[] }> }>
  configuration: { last_reload?: { outcome: string; problems: { message: string }[] } }
}

test('SIGHUP reads the configuration again, and an error changes nothing', slow, async () => {
  const { service, file, yaml, node, status } = await start()
  const outcome = async () => (await status()).configuration.last_reload?.outcome
  await writeFile(file, yaml.replace('level: info', 'level: loud'))
  service.child.kill('SIGHUP')
  await waitFor('the refusal', async () => (await outcome()) === 'refused')
  const { problems } = (await status()).configuration.last_reload!
  expect(problems[0]?.message).toContain('`logging.level` in')
  expect(problems[0]?.message).toContain('line 8')
  expect(service.output()).toContain('configuration not reloaded, nothing was changed')

  const two = `  two:\n    variant: Q\n    networks: { mainnet: { upstreams: [{ url: "${node.url}" }] } }\n`
  await writeFile(file, yaml.replace('logging:', `${two}logging:`))
  service.child.kill('SIGHUP')
  await waitFor('the second chain', async () => (await status()).chains.two !== undefined)
  expect((await fetch(`${service.connection.base_url}/ready`)).status).toBe(200)
  expect((await service.stop()).code).toBe(0)
})

test('chains and nodes are added and removed by commands', slow, async () => {
  const { service, file, yaml, node, status, run } = await start()
  const other = await startStubNode(202)
  const added = await run('chains', 'add', 'two', '--variant', 'Q', '--url', other.url)
  expect(added).toMatchObject({ code: 0, stdout: 'Added: two/mainnet\n' })
  expect((await status()).chains.two?.networks).toEqual(['mainnet'])
  const text = await readFile(file, 'utf8')
  expect(text).toContain('# Kept as it is.')
  expect(text).toContain('chain_id: 202')
  expect((await stat(file)).mode & 0o777).toBe(0o600)

  const wrong = await run('nodes', 'add', 'two', node.url)
  expect(wrong.stderr).toContain('The node is of chain 101, and two/mainnet is 202.')
  const third = await startStubNode(202)
  expect((await run('nodes', 'add', 'two', third.url)).stdout).toBe('Changed: two/mainnet\n')
  expect((await status()).chains.two?.nodes.mainnet?.upstreams).toHaveLength(2)
  expect((await run('nodes', 'remove', 'two', other.url)).stdout).toBe('Changed: two/mainnet\n')
  expect((await run('nodes', 'remove', 'two', third.url)).stderr).toContain('This is the only node')

  const again = await run('chains', 'add', 'two', '--variant', 'Q', '--url', other.url)
  expect(again.stderr).toContain('two/mainnet is configured.')
  const bad = await run('chains', 'add', 'admin', '--variant', 'Q', '--url', other.url)
  expect(bad.stderr).toContain('have another name')
  const network = await run('chains', 'add', 'two/test', '--url', 'http://127.0.0.1:9')
  expect(network.stdout).toBe('Added: two/test\n')
  expect((await run('chains', 'remove', 'two/test')).stdout).toBe('Removed: two/test\n')
  expect((await run('chains', 'remove', 'two')).stdout).toBe('Removed: two/mainnet\n')
  expect((await run('config', 'reload')).stdout).toBe('Nothing differs from what runs.\n')
  expect((await status()).chains.two).toBeUndefined()

  await writeFile(file, yaml.replace('logging:', 'server:\n  body_limit_bytes: 2000\nlogging:'))
  expect((await run('config', 'reload')).stdout).toBe('Needs a restart: server.body_limit_bytes\n')
  await writeFile(file, `${yaml}\nnonsense: 1\n`)
  const refused = await run('config', 'reload')
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('Unknown key `nonsense` in')
  await writeFile(file, yaml)
  await service.stop()
  const offline = await run('chains', 'add', 'two', '--variant', 'Q', '--url', other.url)
  expect(offline.stdout).toContain('The next start of the service reads it.')
})

test(
  'a chain with wallets is removed with --force only, and its wallets can be read',
  slow,
  async () => {
    const { service, file, run } = await start()
    const anvil = await startAnvil({ chainId: 303 })
    onTestFinished(() => anvil.kill())
    expect((await run('chains', 'add', 'base', '--variant', 'C', '--url', anvil.url)).code).toBe(0)
    // The network was not used yet, so that nothing is stored of it.
    const unused = await run('chains', 'add', 'copy', '--variant', 'C', '--url', anvil.url)
    expect(unused.code).toBe(1)
    expect(unused.stderr).toMatch(/copy\.networks\.mainnet.*has the nodes of base\/mainnet/)
    const wallet = JSON.stringify({ name: 'a', address: `0x${'ab'.repeat(20)}`, confirmation: 1 })
    const registered = await run('call', 'base', 'RegisterWallet', wallet)
    expect(registered).toMatchObject({ code: 0 })

    const refused = await run('chains', 'remove', 'base')
    expect(refused.stderr).toContain('base has 1 wallet, which would not be tracked any more.')
    expect(await readFile(file, 'utf8')).toContain('base:')
    const same = await run('chains', 'add', 'copy', '--variant', 'C', '--url', anvil.url)
    expect(same.stderr).toMatch(/copy\.networks\.mainnet.*has the nodes of base\/mainnet/)
    // The file is as before, so that the next start has no chain that the service refused.
    expect(await readFile(file, 'utf8')).not.toContain('copy:')

    expect((await run('chains', 'remove', 'base', '--force')).stdout).toBe(
      'Removed: base/mainnet\n',
    )
    expect((await run('call', 'base', 'ListWallets')).stdout).toContain('"name": "a"')
    expect((await service.stop()).code).toBe(0)
  },
)

test('a chain is added by the address of its node, which says what it is', async () => {
  const folder = await freshFolder()
  const file = join(folder, 'portolan.yaml')
  const run = (...args: string[]) =>
    runCommand([...args, '--config', file], { dataDir: join(folder, 'data') })
  await writeFile(file, '')
  const [arbitrum, sepolia, ton] = [
    await startStubNode(42_161),
    await startStubNode(84_532),
    await startTonDevChain({}),
  ]
  onTestFinished(ton.stop)
  const added = await run('chains', 'add', 'arbitrum', arbitrum.url)
  expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('Arbitrum One, ETH')])
  expect((await run('chains', 'add', 'base', sepolia.url)).code).toBe(0)
  expect((await run('chains', 'add', 'coin', ton.node_url)).code).toBe(0)
  const text = await readFile(file, 'utf8')
  expect(text).toContain('# Proposed for wallets and webhooks: confirmation')
  const { chains } = loadConfig({ env: {}, cwd: folder, file })
  expect(chains).toMatchObject({
    arbitrum: {
      variant: 'C',
      networks: {
        mainnet: { chain_id: 42_161, unproven_types: [0x64, 0x65, 0x66, 0x68, 0x69, 0x6a] },
      },
    },
    base: { default_network: 'sepolia', networks: { sepolia: { chain_id: 84_532 } } },
    coin: { variant: 'T', kind: 'ton' },
  })
  const other = await run('chains', 'add', 'polygon', arbitrum.url)
  expect(other.stderr).toContain('on chain 42161 (Arbitrum One), not on polygon.')
  const silent = await run('chains', 'add', 'silent', 'http://127.0.0.1:9')
  expect(silent.stderr).toContain('No node says what it is.')
})

test('the first chain of a file is added, and the file stays as it was otherwise', async () => {
  const folder = await freshFolder()
  const file = join(folder, 'portolan.yaml')
  const run = (...args: string[]) =>
    runCommand([...args, '--config', file], { dataDir: join(folder, 'data') })
  await writeFile(file, '# Mine.\nserver:\n  port: 4100 # Not the usual one.\nchains:\n', {
    mode: 0o640,
  })
  const added = await run(
    'chains',
    'add',
    'base',
    '--variant',
    'C,Q',
    '--url',
    'http://127.0.0.1:9',
  )
  expect(added.stderr).toContain('does not answer')
  expect(added.stdout).toContain('The next start of the service reads it.')
  expect(await readFile(file, 'utf8')).toBe(`# Mine.
server:
  port: 4100 # Not the usual one.
chains:
  base:
    variants:
      - C
      - Q
    networks:
      mainnet:
        upstreams:
          - url: http://127.0.0.1:9
`)
  expect((await stat(file)).mode & 0o777).toBe(0o640)
  const bad = await run('nodes', 'add', 'base', 'ftp://127.0.0.1')
  expect(bad.code).toBe(1)
  expect(bad.stderr).toContain('portolan.yaml line')
  expect((await run('chains', 'add', 'base/dev', '--url', 'env:NODE_URL')).code).toBe(1)
  expect((await run('chains', 'add', 'x')).stderr).toContain(
    'Name the nodes of the chain, such as "portolan chains add x https://…".',
  )
  expect((await run('chains', 'remove', 'polygon')).stderr).toContain('polygon is not configured.')
})
