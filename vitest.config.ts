import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Shared machines lose CPU for a while: the limits are for what never ends.
const patient = { poll: { timeout: 60_000 } }

// About the sources themselves; they need no server.
const architectureTests = 'test/architecture/*.test.ts'

// Half a minute and more each, run by `npm run campaign`.
const longTests = ['test/faults/*.long.test.ts', 'test/deploy/*.long.test.ts']

// Their bounds on times or memory need a worker of their own and free cores.
const measuringTests = [
  'src/domain/limits/shared-windows.itest.ts',
  'test/faults/feed-clients.test.ts',
  'test/faults/http-slow-clients.test.ts',
  'test/faults/many-addresses.test.ts',
  'test/security/connections.test.ts',
  'test/security/guessing.test.ts',
  'test/security/large-bodies.test.ts',
  // A broadcast to the emulated node took 30 s twice beside other files; alone never.
  'test/transactions/life.test.ts',
  'test/webhooks/dead-receiver.test.ts',
]

/** Files of 10 s and more, about longest first. At the end of the run one of them would keep one worker busy alone. */
const longestFiles = [
  'test/faults/cluster.test.ts',
  'test/console/console.test.ts',
  'test/e2e/first-five-minutes.test.ts',
  'test/cli/kill.test.ts',
  'src/workers/tracker/refill.itest.ts',
  'test/cli/start.test.ts',
  // Waits for the next look of a watch, every 15 s.
  'test/cli/untracked.test.ts',
  'test/http/bad-requests-t-s-p.test.ts',
  'test/chains/node-failures.test.ts',
  'test/cli/administration.test.ts',
  'test/chains/ton/plans.test.ts',
  'test/chains/polkadot/finality.test.ts',
  'src/chains/evm/pool/lies.itest.ts',
  'test/faults/sui-lies.test.ts',
  'test/security/master-key-processes.test.ts',
  'test/faults/rolling.test.ts',
  'test/faults/storage-kill.test.ts',
  'test/faults/evm-world.test.ts',
  'test/cli/reload.test.ts',
  'test/faults/tracker-model.test.ts',
  'test/e2e/examples.test.ts',
  'src/workers/tracker/confirmations.itest.ts',
  'test/http/bad-requests-admin-q-c.test.ts',
  'test/chains/polkadot/nodes.test.ts',
  'test/gateway-ws/feeds.test.ts',
  'test/security/replay.test.ts',
  'test/cli/start-failures.test.ts',
  'test/chains/polkadot/conformance.test.ts',
  'test/chains/reload.test.ts',
  'src/app/cluster/growth.itest.ts',
  'test/cli/storage.test.ts',
  'test/http/authentication.test.ts',
  'src/storage/migrations/migrate.itest.ts',
  'test/security/idempotency.test.ts',
  'test/cli/workers.test.ts',
  'test/transactions/answers.test.ts',
  'test/chains/sui/wallets.test.ts',
  'test/security/large-bodies.test.ts',
  'test/faults/service-kill.test.ts',
  'test/faults/http-database-gone.test.ts',
  'src/storage/embedded/embedded-postgres.itest.ts',
  'test/security/keys.test.ts',
  'test/chains/sui/dev-node-kill.test.ts',
  'test/webhooks/sinks.test.ts',
  'test/http/documents.test.ts',
  'test/chains/sui/conformance.test.ts',
  'test/http/tenant-isolation.test.ts',
  'src/storage/archive/archive.itest.ts',
  'test/chains/ton/liteserver.test.ts',
  'test/deploy/files.test.ts',
  'test/chains/ton/index.test.ts',
  'src/domain/limits/shared-windows.itest.ts',
  'test/faults/feed-clients.test.ts',
  'test/package/package.test.ts',
  'test/chains/polkadot/dev-node.test.ts',
  'test/webhooks/deliveries.test.ts',
  'test/chains/ton/wallets.test.ts',
  'src/workers/webhooks/fan-out.itest.ts',
  'test/faults/ton-kill.test.ts',
  'test/gateway/clients.test.ts',
  'test/chains/sui/mutated.test.ts',
  'test/http/events.test.ts',
  'test/chains/polkadot/polkadot-api.test.ts',
  'test/cli/backfill.test.ts',
  'test/chains/ton/dev-node.test.ts',
  'src/workers/tracker/tracker.itest.ts',
  'test/faults/http-embedded-kill.test.ts',
  'test/faults/sui-kill.test.ts',
  'test/query/pending.test.ts',
  'src/workers/sender/confirmations.itest.ts',
  'test/http/telemetry.test.ts',
  'test/cli/readme.test.ts',
  'test/transactions/life.test.ts',
  'test/http/requests.test.ts',
  'test/faults/sender-model.test.ts',
  'src/app/cluster/network-sharing.itest.ts',
  'test/webhooks/reorganizations.test.ts',
  'test/browser/browser.test.ts',
  'src/domain/transactions/open-cost.itest.ts',
  'test/http/roles.test.ts',
  'test/chains/polkadot/chain-head.test.ts',
  'test/gateway/differential.test.ts',
  'test/faults/sender-kill.test.ts',
  'test/security/development-rules.test.ts',
  'test/cli/doctor.test.ts',
  'test/cli/backup.test.ts',
  'test/webhooks/behaviours.test.ts',
  'test/faults/http-slow-clients.test.ts',
  'test/faults/ton-seeds.test.ts',
  'src/domain/transactions/sender-nonces.itest.ts',
  'src/workers/tracker/token-accounts.itest.ts',
  'test/gateway/access.test.ts',
  'test/gateway/sockets.test.ts',
  'src/storage/migrations/concurrent.itest.ts',
  'src/workers/tracker/token-rules.itest.ts',
  'test/chains/evm/dev-chain-restarts.test.ts',
  'src/domain/wallets/wallets.itest.ts',
  'test/cli/help.test.ts',
]

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = longestFiles.findIndex((file) => moduleId.endsWith(file))
  return rank === -1 ? longestFiles.length : rank
}

/** Without the durations of an earlier run, Vitest orders by the size of the files. It asks for a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b))
  }
}

// Workers and the programs that tests start inherit it. It saves a second of CPU for every start of the service.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'node-compile-cache')

// npm has no anvil for it.
const hasEmulatedNodes = process.platform === 'linux' && process.arch === 'arm64'

const seeded = ['test/helpers/seeded.ts']

const withServers = {
  globalSetup: ['test/helpers/global-setup.ts'],
  setupFiles: seeded,
  // No retry: a test that fails once in a while hides a defect, of itself or of the service.
  // Many tests start several programs.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: patient,
}

export default defineConfig({
  test: {
    // By default one less than there are cores, which is one on small machines.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          pool: 'threads',
          // Some wait for sockets and time limits.
          maxWorkers: 3,
          setupFiles: seeded,
          // Modules hold no state. Loading them for every file took a third of the time.
          isolate: false,
          include: [
            'src/**/*.test.ts',
            'client/src/**/*.test.ts',
            'console/src/**/*.test.ts',
            'console/build/**/*.test.ts',
            architectureTests,
          ],
          testTimeout: 120_000,
          expect: patient,
        },
      },
      {
        test: {
          ...withServers,
          name: 'integration',
          include: ['src/**/*.itest.ts', 'test/**/*.test.ts'],
          exclude: ['**/node_modules/**', architectureTests, ...longTests, ...measuringTests],
          isolate: false,
          // Most files wait (for programs, time limits, servers): two workers leave two cores idle for a third of
          // the time, five for a twelfth. In one group the waits of one file overlap with the work of others. With
          // more than three, emulated nodes miss limits of 30 s.
          maxWorkers: hasEmulatedNodes ? 3 : 5,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'measuring',
          include: measuringTests,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'campaign',
          include: longTests,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
