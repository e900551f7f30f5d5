import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startPolkadotDevChain } from '../../devnet/polkadot/node.ts'
import { startSuiDevChain } from '../../devnet/sui/dev-chain.ts'
import { loadConfig } from '../../src/app/config/load.ts'
import { freshFolder, runCommand } from './portolan.ts'

const slow = { timeout: 180_000 }

test('every node is asked, and the file that is written is a configuration', slow, async () => {
  const cwd = await freshFolder()
  const anvil = await startAnvil({ chainId: 4242 })
  onTestFinished(anvil.stop)
  const sui = await startSuiDevChain({ blockTimeMs: 0 })
  onTestFinished(sui.stop)
  const polkadot = await startPolkadotDevChain({ manual: true })
  onTestFinished(polkadot.stop)
  const nodes = [
    ...['--c', anvil.url, anvil.wsUrl],
    ...['--s', sui.node_url],
    ...['--p', polkadot.node_url],
    ...['--t', 'http://127.0.0.1:1/api/v2'],
  ]
  const { code, stderr } = await runCommand(['init', ...nodes], { cwd })
  expect(stderr).toContain('is on chain 4242')
  expect(stderr).toContain('! t 127.0.0.1:1 does not answer')
  expect(code).toBe(0)
  const file = join(cwd, 'portolan.yaml')
  const { chains } = loadConfig({ env: {}, cwd, file })
  expect(chains.c?.networks.mainnet).toMatchObject({
    chain_id: 4242,
    upstreams: [{ url: anvil.url }, { url: anvil.wsUrl }],
  })
  expect(chains.s?.networks.mainnet?.chain_id).toMatch(/^[0-9a-f]{8}$/)
  expect(chains.p?.networks.mainnet?.chain_id).toBe(polkadot.genesis_hash)

  const before = await readFile(file, 'utf8')
  const again = await runCommand(['init', '--c', anvil.url], { cwd })
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') })
  expect(await readFile(file, 'utf8')).toBe(before)
  const replaced = await runCommand(['init', '--c', anvil.url, '--force'], { cwd })
  expect(replaced.stdout).toBe('portolan.yaml is written. Start with "portolan start".\n')
  const other = await runCommand(['init', '--c', anvil.url, '--output', 'other.yaml'], { cwd })
  expect(other.stdout).toContain('Start with "portolan start --config other.yaml".')
})

test(
  'nodes of different chains, wrong addresses and a missing terminal are refused',
  slow,
  async () => {
    const cwd = await freshFolder()
    const nodes = await Promise.all([startAnvil({ chainId: 1 }), startAnvil({ chainId: 2 })])
    for (const node of nodes) onTestFinished(node.stop)
    const refused = async (...args: string[]) => {
      const { code, stderr } = await runCommand(['init', ...args], { cwd })
      return `${code}: ${stderr.trim().split('\n').at(-1)}`
    }
    expect(await refused('--c', ...nodes.map(({ url }) => url))).toBe(
      '1: The nodes of c are on different chains: 1, 2.',
    )
    expect(await refused('--p', 'http://127.0.0.1:1')).toMatch(/^2: .*begin with ws:/)
    expect(await refused()).toMatch(/^2: Without a terminal, pass the nodes/)
  },
)
