import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/app/config/load.ts'
import { startStub } from '../../src/chains/evm/testing/stub-node.ts'
import { freshFolder, runCommand } from './portolan.ts'

const startNode = async (chainId: number) => {
  const stub = await startStub('node')
  stub.chainId = chainId
  onTestFinished(stub.stop)
  return stub.url
}

test('chains are named by options, and networks by the chain ids of the nodes', async () => {
  const cwd = await freshFolder()
  const [ethereum, base, sepolia, arbitrum, own] = await Promise.all(
    [1, 8_453, 84_532, 42_161, 987_654_321].map(startNode),
  )
  const { code, stderr } = await runCommand(
    [
      ...['init', '--ethereum', ethereum!, `--base=${base}`, sepolia!, '--node', arbitrum!, own!],
      ...['--database', 'env:DATABASE_URL'],
    ],
    { cwd },
  )
  expect(stderr).toContain('is on chain 84532 (Base Sepolia)')
  expect(code).toBe(0)
  const file = join(cwd, 'portolan.yaml')
  const { chains } = loadConfig({ env: { DATABASE_URL: 'postgres://x/y' }, cwd, file })
  const shown = Object.entries(chains).flatMap(([name, { variant, networks }]) =>
    Object.entries(networks).map(
      ([network, { chain_id, upstreams }]) =>
        [`${name}/${network}`, variant, chain_id, upstreams[0]!.url] as const,
    ),
  )
  expect(shown).toEqual([
    ['ethereum/mainnet', 'C', 1, ethereum],
    ['base/mainnet', 'C', 8_453, base],
    ['base/sepolia', 'C', 84_532, sepolia],
    ['arbitrum/mainnet', 'C', 42_161, arbitrum],
    ['chain-987654321/mainnet', 'C', 987_654_321, own],
  ])
  expect(chains.arbitrum?.networks.mainnet).toMatchObject({
    unproven_types: [100, 101, 102, 104, 105, 106],
  })
  const text = await readFile(file, 'utf8')
  expect(text).toContain(
    [
      '      # Base, ETH, a block about every 2 s.',
      '      # Proposed for wallets and webhooks: confirmation 72, about 144 s.',
      '      # Explorer: https://basescan.org',
      '      mainnet:',
    ].join('\n'),
  )
})

test('names that are not known, and nodes of other chains, are refused', async () => {
  const cwd = await freshFolder()
  const base = await startNode(8_453)
  const refused = async (...args: string[]) => {
    const { code, stderr } = await runCommand(['init', ...args], { cwd })
    return `${code}: ${stderr.trim().split('\n').at(-1)}`
  }
  expect(await refused('--bsae', base)).toBe("2: Unknown option '--bsae'. Did you mean --base?")
  expect(await refused('--etherium', base)).toBe(
    "2: Unknown option '--etherium'. Did you mean --ethereum?",
  )
  expect(await refused('--forse', '--base', base)).toMatch(/Did you mean --force\?$/)
  expect(await refused('--xyzzy', base)).toMatch(/For any EVM chain use --node\.$/)
  expect(await refused('--polygon', base)).toMatch(
    /^1: 127\.0\.0\.1:\d+ is on chain 8453 \(Base\), not on polygon\. Use --base\.$/,
  )
  expect(await refused('--base')).toBe('2: --base needs the address of a node.')
  expect(await refused(base)).toMatch(/^2: ".*" is not expected here\./)
  expect(await refused('--base', 'localhost:1')).toMatch(/^2: .*begin with http/)
  expect(await refused('--node', 'http://127.0.0.1:1')).toMatch(/so its chain is not known/)
})

test('a node that does not answer is written under the name that was given', async () => {
  const cwd = await freshFolder()
  const { code, stderr } = await runCommand(['init', '--base', 'http://127.0.0.1:1'], { cwd })
  expect([code, stderr]).toEqual([0, expect.stringContaining('! base 127.0.0.1:1 does not answer')])
  const { chains } = loadConfig({ env: {}, cwd, file: join(cwd, 'portolan.yaml') })
  expect(chains.base?.networks.mainnet?.upstreams[0]?.url).toBe('http://127.0.0.1:1')
})
