import { createRequire } from 'node:module'
import pg from 'pg'
import { expect, test } from 'vitest'
import { createStatement } from './prepared.ts'

// `createStatement` uses members of the driver that its documentation does not promise. These tests fail
// when a new version of the driver changes them; `prepared.itest.ts` shows that they work with a server.

test('the driver is the version that createStatement was written for', () => {
  const { version } = createRequire(import.meta.url)('pg/package.json') as { version: string }
  // After an update: read `lib/client.js`, `lib/connection.js` and `lib/query.js` of the driver for changes
  // of the members below, run both test files, then change the version here.
  expect(version).toBe('8.23.1')
})

test('a connection has the members that createStatement uses', () => {
  const connection = new pg.Connection({}) as unknown as Record<string, unknown>
  expect(connection).toMatchObject({ parsedStatements: {}, submittedNamedStatements: {} })
  for (const name of ['parse', 'bind', 'execute', 'sync'])
    expect([name, typeof connection[name]]).toEqual([name, 'function'])
  const stream = connection.stream as Record<string, unknown>
  expect([typeof stream.cork, typeof stream.uncork]).toEqual(['function', 'function'])
})

type Message = { kind: string; body: string }

/** The protocol messages that a connection writes. */
function messagesIn(bytes: Buffer): Message[] {
  const messages: Message[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readInt32BE(at + 1)
    const body = bytes.toString('latin1', at + 5, at + 1 + length)
    messages.push({ kind: String.fromCharCode(bytes[at]!), body })
    at += 1 + length
  }
  return messages
}

test('the driver writes exactly parse, bind, execute and sync, and parse only once', () => {
  const written: Buffer[] = []
  const connection = new pg.Connection({
    stream: {
      writable: true,
      cork() {},
      uncork() {},
      on() {},
      write: (bytes: Buffer) => void written.push(Buffer.from(bytes)),
    } as never,
  })
  const results: unknown[] = []
  type Submitted = {
    submit(connection: unknown): void
    handleCommandComplete(message: { text: string }): void
    handleReadyForQuery(): void
    handleError(error: Error): void
  }
  const submitted: Submitted[] = []
  const client = {
    query(query: Submitted) {
      submitted.push(query)
      query.submit(connection)
    },
  }
  const pool = {
    options: {},
    connect: (done: (error: undefined, client: unknown, release: () => void) => void) =>
      done(undefined, client, () => results.push('released')),
  } as unknown as pg.Pool
  const statement = createStatement(pool, 'insert into t values ($1)')
  const run = (value: string) => {
    statement([value], (error, rowCount) => results.push(error ?? rowCount))
    const messages = messagesIn(Buffer.concat(written.splice(0)))
    const query = submitted.at(-1)!
    query.handleCommandComplete({ text: 'INSERT 0 3' })
    query.handleReadyForQuery()
    return messages
  }
  const first = run('a')
  expect(first.map(({ kind }) => kind)).toEqual(['P', 'B', 'E', 'S'])
  expect(first[0]!.body).toContain('insert into t values ($1)')
  expect(first[1]!.body).toContain('a')
  expect(run('b').map(({ kind }) => kind)).toEqual(['B', 'E', 'S'])
  expect(results).toEqual(['released', 3, 'released', 3])
})
