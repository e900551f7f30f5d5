import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

// Runs the long campaigns, each a program of its own; a small seeded sample of each is in the tests. An argument chooses
// those whose command contains it: `npm run campaign -- security/replay`.

const vitest = (project: string, ...files: readonly string[]): string[] => [
  ...['../node_modules/vitest/vitest.mjs', 'run', '--project', project],
  ...files,
]

const campaigns = [
  ['faults/storage-kill.ts', '--kills', '100', '--seed', '1'],
  ['faults/service-kill.ts', '--kills', '60', '--seed', '1'],
  ['faults/restarts.ts', '--restarts', '10', '--seed', '1'],
  ['faults/rolling.ts', '--balancer', 'haproxy', '--requests', '20000', '--restarts', '6'],
  ['faults/rolling.ts', '--balancer', 'nginx', '--requests', '20000', '--restarts', '6'],
  // To a next version and back, two versions side by side.
  ['faults/upgrade.ts', '--requests', '8000'],
  // An hour on ten processes that are replaced by a next version; three minutes of it with each fault are in the tests.
  ['faults/cluster.ts', '--seconds', '3600', '--seed', '2', '--next'],
  // The history of 200 seeds, each checked when its load is over.
  ['faults/cluster.ts', '--seconds', '15', '--seeds', '200', '--seed', '3'],
  ['faults/webhook-kill.ts', '--kills', '100', '--events', '1000', '--seed', '1'],
  ['faults/tracker-model.ts', '--seeds', '200', '--seed', '1'],
  ['faults/upstream-faults.ts', '--requests', '100000', '--seed', '1'],
  // 500 scripts instead of the samples in the tests.
  vitest('unit', 'src/gateway/streams/feed-model.test.ts'),
  // 20,000 byte streams against both HTTP parsers.
  vitest('unit', 'src/http/fast-path/differential.test.ts'),
  // Other values in every property test.
  vitest('unit'),
  // 500 scripts of forks through the whole gateway, two clients on each surface.
  vitest('integration', 'test/gateway-ws/one-branch-model.test.ts'),
  // 10,000 requests on one chain while another one is added, changed and removed.
  vitest('integration', 'test/chains/reload.test.ts'),
  vitest('campaign'),
  vitest('integration', '--project', 'measuring', 'test/security'),
  // At least 130,000 hostile bodies.
  vitest('integration', 'test/http/bad-requests'),
  // Every wrong credential and every role against every operation.
  vitest('integration', 'test/http/authentication', 'test/http/roles'),
  // Every tenant against the ids of another.
  vitest('integration', 'test/http/tenant-isolation'),
  ['faults/evm-world.ts', '--seeds', '200', '--seed', '1'],
  ['faults/many-addresses.ts', '--addresses', '1000000'],
  ['faults/sender-model.ts', '--seeds', '300', '--seed', '1'],
  ['faults/sender-kill.ts', '--points', '100'],
  ['faults/ton-seeds.ts', '--seeds', '100', '--seed', '1'],
  // 10,000 mutated checkpoints of Sui.
  vitest('integration', 'test/chains/sui/mutated.test.ts'),
  ['faults/ton-mutated.ts', '--blocks', '10000', '--seed', '1'],
  ['faults/evm-mutated.ts', '--blocks', '10000', '--seed', '1'],
  ['faults/polkadot-mutated.ts', '--blocks', '10000', '--seed', '1'],
  ['faults/ton-contracts.ts', '--rounds', '200', '--seed', '1'],
  ['faults/polkadot-accounts.ts', '--rounds', '2000', '--seed', '1'],
  ['faults/polkadot-kill.ts', '--seeds', '50', '--seed', '1'],
  ['faults/sui-kill.ts', '--seeds', '100', '--seed', '1'],
  ['faults/sui-random.ts', '--count', '20000', '--seed', '1'],
  ['package/install.ts'],
  ['package/image.ts'],
  ['security/replay.ts', '--replays', '5000', '--seed', '1'],
  // Ten minutes: 4,000 calls on each side of each kind.
  ['security/noisy-neighbour.ts', '--seconds', '5', '--rounds', '4'],
]

const chosen = process.argv[2] ?? ''
const seed = `${Date.now() % 2 ** 31}`
console.log(`property tests use PROPERTY_SEED=${seed} unless it is set`)

for (const [file = '', ...args] of campaigns) {
  if (![file, ...args].join(' ').includes(chosen)) continue
  console.log(`\n== ${file} ${args.join(' ')}`)
  const child = spawn(process.execPath, [join(import.meta.dirname, file), ...args], {
    stdio: 'inherit',
    cwd: join(import.meta.dirname, '..'),
    env: {
      PROPERTY_SEED: seed,
      FEED_SCRIPTS: '500',
      BRANCH_SCRIPTS: '500',
      RELOAD_REQUESTS: '10000',
      SUI_MUTATED: '10000',
      FRONT_RUNS: '20000',
      BAD_REQUESTS: '1200',
      SECURITY_KILLS: '10',
      ...process.env,
    },
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) process.exitCode = 1
}
