import { onTestFinished } from 'vitest'
import { createJumpingClock } from '../../chains/evm/testing/jumping-clock.ts'
import { type StubNode, startStub } from '../../chains/evm/testing/stub-node.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { loadConfig } from '../config/load.ts'
import { openNetworks } from '../networks.ts'

/** The network `base/mainnet` on one stub node, with a clock that jumps; stopped with the test. */
export async function openStubNetwork(
  settings: object,
  urlOf: (stub: StubNode) => string = ({ url }) => url,
) {
  const stub = await startStub('a')
  onTestFinished(stub.stop)
  const clock = createJumpingClock()
  const base = { ...settings, networks: { mainnet: { upstreams: [{ url: urlOf(stub) }] } } }
  const config = loadConfig({ env: {}, cwd: '/', overrides: { chains: { base } } })
  const networks = openNetworks(config, {
    ...{ env: {}, log: silentLog, clock, ids: systemIds, spill: () => {} },
  })
  onTestFinished(networks.stop)
  return { stub, clock, config, networks, network: networks.byPath.get('/base/mainnet')! }
}
