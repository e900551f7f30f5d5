// What a migration does to a service that runs beside it, for `portolan migrate --plan` and for the test that refuses
// migrations which two versions cannot share (CONTRIBUTING.md). It reads the text of statements with patterns, because the
// files are ours. A statement that no rule knows is shown as a scan under an unknown lock; the test does not refuse it.

import type { MigrationFile } from './files.ts'
import { isConcurrent, isRepeatable, splitStatements } from './statements.ts'

/** How long a statement holds its lock: not at all, for a moment, or as long as it reads the table. */
export type DurationClass = 'instant' | 'short' | 'scan'

/** One statement of a migration, with what it means for a service that runs beside it. */
export type PlannedStatement = {
  statement: string
  table: string
  /** The strongest lock that it takes, in the words of PostgreSQL. */
  lock: string
  duration: DurationClass
}

/** What a migration would do, inside of the transaction of its neighbours or outside of any. */
export type PlannedMigration = {
  name: string
  in_transaction: boolean
  statements: PlannedStatement[]
}

/** Describes migrations statement by statement. */
export const planMigrations = (files: readonly MigrationFile[]): PlannedMigration[] =>
  files.map(({ name, sql }) => {
    const created = new Set<string>()
    const statements = splitStatements(sql).map((statement) => {
      const planned = planStatement(statement, created)
      const [, table] =
        /^create (?:unlogged )?table (?:if not exists )?(\w+)/i.exec(statement) ?? []
      if (table) created.add(table)
      return planned
    })
    return { name, in_transaction: !isConcurrent(sql), statements }
  })

// A table of rules instead of a parser: `libpg-query` would be a dependency of the service for files that are written by us
// and read by a test.
type Rule = {
  matches: RegExp
  lock: string
  duration: DurationClass
  /** Why it must not be in a migration of a release that runs beside the one before; undefined where it may. */
  fault?: string
  /** Whether it takes something away that the version before uses. */
  removes?: true
}

// The first rule that matches counts. `$1` is the table.
const rules: readonly Rule[] = [
  {
    matches: /^create (?:unlogged )?table (?:if not exists )?(\w+)/i,
    lock: 'none',
    duration: 'instant',
  },
  {
    matches: /^create (?:unique )?index concurrently .*? on (\w+)/i,
    lock: 'SHARE UPDATE EXCLUSIVE',
    duration: 'scan',
  },
  {
    matches: /^create (?:unique )?index .*? on (\w+)/i,
    lock: 'SHARE',
    duration: 'scan',
    fault:
      'an index on a table that is in use blocks its writers while it is built; build it concurrently, in a file of its own',
  },
  // Instant, but the lock waits for readers; whether a query needs the index is for the reviewer.
  { matches: /^drop index/i, lock: 'ACCESS EXCLUSIVE', duration: 'instant' },
  {
    matches: /^drop table (?:if exists )?(\w+)/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'instant',
    fault: 'the version before still uses the table; drop it one release later',
    removes: true,
  },
  {
    // Reads the table beside readers and writers, so it may be in any release.
    matches: /^alter table (\w+) validate constraint/i,
    lock: 'SHARE UPDATE EXCLUSIVE',
    duration: 'scan',
  },
  {
    matches: /^alter table (\w+) add constraint .* not valid$/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'instant',
  },
  {
    matches: /^alter table (\w+) add constraint/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'scan',
    fault: 'a constraint reads the whole table under a lock; add it NOT VALID and validate it',
  },
  {
    matches: /^alter table (\w+) add (?:column )?.* references /i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'scan',
    fault: 'a foreign key locks both tables; add it NOT VALID and validate it',
  },
  {
    matches: /^alter table (\w+) add (?:column )?(?!.*\bdefault\b).* not null/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'scan',
    fault: 'the version before does not write the column; give it a default, or allow null',
  },
  // A default that is constant is stored in the catalogue and rewrites nothing (PostgreSQL 11 and newer).
  { matches: /^alter table (\w+) add /i, lock: 'ACCESS EXCLUSIVE', duration: 'instant' },
  { matches: /^alter table (\w+) drop constraint/i, lock: 'ACCESS EXCLUSIVE', duration: 'instant' },
  {
    matches: /^alter table (\w+) drop /i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'instant',
    fault: 'the version before still reads the column; drop it one release later',
    removes: true,
  },
  {
    matches: /^alter table (\w+) alter column \w+ (?:set data )?type/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'scan',
    fault: 'a change of type rewrites the table; add another column',
    removes: true,
  },
  {
    matches: /^alter table (\w+) alter column \w+ set not null/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'scan',
    fault: 'the version before may write null; add a check NOT VALID one release later',
    removes: true,
  },
  {
    matches: /^alter table (\w+) rename/i,
    lock: 'ACCESS EXCLUSIVE',
    duration: 'instant',
    fault: 'the version before uses the old name; add the new one beside it',
    removes: true,
  },
  { matches: /^alter table (\w+)/i, lock: 'ACCESS EXCLUSIVE', duration: 'instant' },
  {
    matches: /^(?:insert into|update|delete from) (\w+)/i,
    lock: 'ROW EXCLUSIVE',
    duration: 'short',
  },
  {
    matches: /^(?:comment|grant|revoke|create (?:extension|sequence|type))/i,
    lock: 'none',
    duration: 'instant',
  },
]

const ruleOf = (statement: string): Rule & { table: string } => {
  for (const rule of rules) {
    const found = rule.matches.exec(statement)
    if (found) return { ...rule, table: found[1] ?? '' }
  }
  return { matches: /$/, lock: 'unknown', duration: 'scan', table: '' }
}

function planStatement(statement: string, created: ReadonlySet<string>): PlannedStatement {
  const { table, lock, duration } = ruleOf(statement)
  // Nothing else knows a table of the same transaction yet.
  return created.has(table)
    ? { statement, table, lock: 'none', duration: 'instant' }
    : { statement, table, lock, duration }
}

/** What is wrong with a migration that two versions must be able to use; empty where it may be released. */
export function lintMigration(file: MigrationFile): string[] {
  const statements = splitStatements(file.sql)
  const said = (statement: string, fault: string) =>
    `${file.name}: "${statement.slice(0, 80)}": ${fault}.`
  if (isConcurrent(file.sql))
    return statements
      .filter((statement) => !isRepeatable(statement))
      .map((statement) => said(statement, outsideFault))
  const created = new Set<string>()
  return statements.flatMap((statement) => {
    const [, made] = /^create (?:unlogged )?table (?:if not exists )?(\w+)/i.exec(statement) ?? []
    if (made) created.add(made)
    const { table, fault, removes } = ruleOf(statement)
    if (fault === undefined || created.has(table)) return []
    if (!isAllowed(file, statement)) return [said(statement, fault)]
    return removes && !statements.some((one) => rangePattern.test(one))
      ? [said(statement, removalFault)]
      : []
  })
}

const outsideFault =
  'a file that builds an index concurrently runs outside of a transaction, so each statement must be one that can be repeated: create index concurrently if not exists, drop index concurrently if exists, or validate constraint'
const rangePattern = /^update schema_migration_range set oldest_version = '\d{4}-[a-z0-9-]+'$/i
const removalFault =
  'older versions cannot run after a removal; set oldest_version of schema_migration_range in the same file'

// `-- allowed: reason` above a statement excepts it, with the reason in the file.
const isAllowed = ({ sql }: MigrationFile, statement: string): boolean => {
  const first = statement.split(' ').slice(0, 5).join(' ')
  return sql
    .split('\n')
    .some((line, at, lines) => /^-- allowed: \S/.test(line) && restOf(lines, at).startsWith(first))
}

/** The statement below a line, as far as its beginning needs it, with comments left out. */
const restOf = (lines: readonly string[], at: number): string =>
  lines
    .slice(at + 1, at + 6)
    .filter((line) => !line.startsWith('--'))
    .join(' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
