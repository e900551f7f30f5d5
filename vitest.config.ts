import { defineConfig } from 'vitest/config'

// A busy machine is no failure: what is waited for may take its time.
const patient = { poll: { timeout: 20_000 } }

// About the sources themselves; they need no server.
const architectureTests = 'test/architecture/*.test.ts'

// Half a minute and more each, run by `npm run campaign`.
const longTests = 'test/faults/*.long.test.ts'

export default defineConfig({
  test: {
    // By default one less than there are cores, which is one on small machines.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          pool: 'threads',
          include: ['src/**/*.test.ts', 'client/src/**/*.test.ts', architectureTests],
          testTimeout: 30_000,
          expect: patient,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts', 'src/**/*.itest.ts'],
          exclude: ['**/node_modules/**', longTests, architectureTests],
          globalSetup: ['test/helpers/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: patient,
        },
      },
      {
        test: {
          name: 'campaign',
          include: [longTests],
          globalSetup: ['test/helpers/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: patient,
        },
      },
    ],
  },
})
