import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // By default one less than there are cores, which is one on small machines.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          pool: 'threads',
          include: ['src/**/*.test.ts', 'client/src/**/*.test.ts'],
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts', 'src/**/*.itest.ts'],
          globalSetup: ['test/helpers/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
