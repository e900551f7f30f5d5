import { expect, test } from 'vitest'
import { ConfigError, type Problem } from '../config/problem.ts'
import { checkIdentities, type NewNetwork } from './identities.ts'

const source = {
  file: '/etc/portolan.yaml',
  origins: {
    'chains.copy.networks.mainnet.upstreams[0].url': {
      ...{ from: 'file' as const, file: 'portolan.yaml', line: 12 },
    },
  },
}
const network = (chain: string, identity: string | Error, isShared = false): NewNetwork => ({
  ...{ chain, network: 'mainnet', isShared },
  nodes: {
    identity: async () => {
      if (identity instanceof Error) throw identity
      return identity
    },
  },
})
const at = (chain: string) => ({ chain, network: 'mainnet' })

const check = async (
  networks: readonly NewNetwork[],
  stored: Record<string, string> = {},
  others = Object.keys(stored),
): Promise<readonly Problem[]> => {
  try {
    await checkIdentities({ source }, networks, {
      others: others.map(at),
      stored: Object.entries(stored).map(([chain, identity]) => ({ ...at(chain), identity })),
    })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

test('nodes of a network that runs are refused with both names, the file and the line', async () => {
  const [problem] = await check([network('copy', 'eip155:137')], { polygon: 'eip155:137' })
  expect(problem).toMatchObject({
    key: 'chains.copy.networks.mainnet',
    file: 'portolan.yaml',
    line: 12,
  })
  expect(problem?.message).toMatch(
    /^`chains\.copy\.networks\.mainnet` in portolan\.yaml line 12 has the nodes of polygon\/mainnet \(eip155:137\)/,
  )
})

test('of two new networks with the same nodes the second is refused', async () => {
  const problems = await check([network('one', 'eip155:1'), network('two', 'eip155:1')])
  expect(problems).toHaveLength(1)
  expect(problems[0]?.key).toBe('chains.two.networks.mainnet')
})

test('nodes of another chain than the stored blocks are refused', async () => {
  const [problem] = await check([network('base', 'eip155:10')], { base: 'eip155:8453' }, [])
  expect(problem?.message).toContain(
    'another chain (eip155:10) than its stored blocks (eip155:8453)',
  )
})

test('shared chains, chains that are gone and nodes that do not answer are no reason', async () => {
  expect(await check([network('copy', 'eip155:1', true)], { one: 'eip155:1' })).toEqual([])
  expect(await check([network('copy', 'eip155:1')], { gone: 'eip155:1' }, [])).toEqual([])
  expect(await check([network('copy', new Error('no answer'))], { one: 'eip155:1' })).toEqual([])
  expect(await check([network('one', 'eip155:1')], { one: 'eip155:1' }, [])).toEqual([])
})
