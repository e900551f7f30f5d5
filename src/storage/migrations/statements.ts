/** The statements of a file, without comments. Migrations have no functions, so every semicolon outside of quotes ends one. */
export function splitStatements(sql: string): string[] {
  // Parts with an odd index are inside of quotes.
  const parts = sql.replaceAll(/--[^\n]*/g, '').split("'")
  return parts
    .map((part, at) => (at % 2 === 0 ? part.replaceAll(';', '\0') : part))
    .join("'")
    .split('\0')
    .map((statement) => statement.replaceAll(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '')
}

/** Whether a file runs outside of a transaction: PostgreSQL builds no index concurrently inside of one. */
export const isConcurrent = (sql: string): boolean =>
  splitStatements(sql).some((statement) => /^(?:create|drop)\b.*\bconcurrently\b/i.test(statement))

/** An index that is built while the table is in use. */
export type IndexStatement = { unique: string; name: string; table: string; rest: string }

const indexPattern =
  /^create (unique )?index concurrently if not exists ([a-z0-9_]+) on ([a-z0-9_]+) (.+)$/i

/** The parts of a statement that builds an index concurrently; undefined for every other one. */
export const parseIndex = (statement: string): IndexStatement | undefined => {
  const [, unique = '', name, table, rest] = indexPattern.exec(statement) ?? []
  return name && table && rest ? { unique, name, table, rest } : undefined
}

/** Whether a statement may be in a file that runs outside of a transaction: one that can be repeated after a crash. */
export const isRepeatable = (statement: string): boolean =>
  parseIndex(statement) !== undefined ||
  /^drop index concurrently if exists [a-z0-9_]+$/i.test(statement) ||
  /^alter table [a-z0-9_]+ validate constraint [a-z0-9_]+$/i.test(statement)
