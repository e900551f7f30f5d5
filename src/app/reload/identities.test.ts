import { expect, test } from 'vitest'
import { ConfigError, type Problem } from '../config/problem.ts'
import { checkIdentities, type NewNetwork, type OtherNetwork } from './identities.ts'

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
/** A network that is configured, with what its settings allow and what its nodes say. */
const other = (
  chain: string,
  { allows = '', says = new Error('must not be asked') as string | Error } = {},
): OtherNetwork => ({
  ...network(chain, says),
  mayHave: (identity) => allows !== '' && identity.startsWith(allows),
})

const check = async (
  networks: readonly NewNetwork[],
  stored: Record<string, string> = {},
  others = Object.keys(stored).map((chain) => other(chain)),
): Promise<readonly Problem[]> => {
  try {
    await checkIdentities({ source }, networks, {
      others,
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

test('nodes of a network that was never used are asked where its settings allow the identity', async () => {
  const added = [network('copy', 'eip155:8453:aa')]
  const base = other('base', { allows: 'eip155:8453:', says: 'eip155:8453:aa' })
  const [problem] = await check(added, {}, [base])
  expect(problem?.message).toContain('has the nodes of base/mainnet (eip155:8453:aa)')
  // A chain with the same id and another first block, as local chains have.
  const fork = other('base', { allows: 'eip155:8453:', says: 'eip155:8453:bb' })
  expect(await check(added, {}, [fork])).toEqual([])
})

test('other networks that were never used are not asked', async () => {
  let asked = 0
  const idle = (chain: string): OtherNetwork => ({
    ...other(chain, { allows: 'eip155:1:' }),
    nodes: {
      identity: async () => {
        asked++
        return 'eip155:1:aa'
      },
    },
  })
  const all = Array.from({ length: 200 }, (_, index) => idle(`idle-${index}`))
  expect(await check([network('copy', 'eip155:8453:aa')], {}, all)).toEqual([])
  // A chain that may be shared is compared with none.
  expect(await check([network('copy', 'eip155:1:aa', true)], {}, all)).toEqual([])
  expect(asked).toBe(0)
})

test('a network whose nodes do not answer is named as not compared, and refuses nothing', async () => {
  const base = other('base', { allows: 'eip155:8453:', says: new Error('no answer') })
  const added = [network('copy', 'eip155:8453:aa')]
  expect(await checkIdentities({ source }, added, { others: [base], stored: [] })).toEqual([
    { network: at('copy'), other: at('base') },
  ])
})

test('the services c and q may have the same nodes', async () => {
  const c = other('c', { allows: 'eip155:1:', says: 'eip155:1:aa' })
  expect(await check([network('q', 'eip155:1:aa')], {}, [c])).toEqual([])
  expect(await check([network('eth', 'eip155:1:aa')], {}, [c])).toHaveLength(1)
})
