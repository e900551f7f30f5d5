import type { Db } from '../../src/storage/pg/database.ts'

/** Stands for the death of the process. */
export class CrashError extends Error {
  override name = 'CrashError'
}

/** A database on which the process dies before a statement. */
export type FaultyDb = {
  db: Db
  /** Lets the n-th statement from now on be the last that is not made. */
  arm(statements: number): void
  disarm(): void
}

/** Wraps a database: throwing before a statement leaves what a killed process leaves. */
export const createFaultyDb = (db: Db): FaultyDb => {
  let left = Number.POSITIVE_INFINITY
  return {
    db: db.withPlugin({
      transformQuery: ({ node }) => {
        left--
        // Who is dead makes no later one either.
        if (left <= 0) throw new CrashError('killed before this statement')
        return node
      },
      transformResult: async ({ result }) => result,
    }),
    arm: (statements) => {
      left = statements
    },
    disarm: () => {
      left = Number.POSITIVE_INFINITY
    },
  }
}
