import { defineConfig } from 'vitest/config'

// A busy machine is no failure: polling may take its time.
const patient = { poll: { timeout: 20_000 } }

// About the sources themselves; they need no server.
const architectureTests = 'test/architecture/*.test.ts'

// Half a minute and more each, run by `npm run campaign`.
const longTests = 'test/faults/*.long.test.ts'

// These start programs and mostly wait for them.
const programTests = ['test/cli/**/*.test.ts', 'test/e2e/**/*.test.ts']

// These run in this process, on a database of their own.
const databaseTests = [
  'src/**/*.itest.ts',
  'test/http/*.test.ts',
  'test/query/*.test.ts',
  'test/transactions/*.test.ts',
]

const withServers = {
  globalSetup: ['test/helpers/global-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: patient,
}

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
          ...withServers,
          name: 'programs',
          include: programTests,
          // Each test starts several programs.
          testTimeout: 120_000,
          // Two workers keep two cores busy for a third of the time only.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'integration',
          include: databaseTests,
          // Modules hold no state: loading the whole service for every file took a third of the time.
          isolate: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: [
            '**/node_modules/**',
            architectureTests,
            longTests,
            ...programTests,
            ...databaseTests,
          ],
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: { ...withServers, name: 'campaign', include: [longTests] },
      },
    ],
  },
})
