import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { type Block, type BlockId, masterchain, type StoredTransaction } from './block.ts'
import { wholeShard } from './shards.ts'

/** What one masterchain block changes, written at once or not at all. */
export type Commit = {
  blocks: { block: Block; transactions: readonly StoredTransaction[] }[]
  /** The new states by account. */
  states: ReadonlyMap<string, string>
  /** Messages that found their place, by id, and those that wait since. */
  taken: readonly number[]
  waiting: readonly { boc: string; external: boolean }[]
  meta: Record<string, string>
}

/** The memory of the chain: a SQLite file, or nothing but memory without a path. */
export type Store = ReturnType<typeof createStore>

const schema = `
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS block (
    workchain INTEGER NOT NULL, shard TEXT NOT NULL, seqno INTEGER NOT NULL,
    mc_seqno INTEGER NOT NULL, root_hash BLOB NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (workchain, shard, seqno)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS block_mc ON block (mc_seqno);
  CREATE TABLE IF NOT EXISTS tx (
    workchain INTEGER NOT NULL, shard TEXT NOT NULL, seqno INTEGER NOT NULL, place INTEGER NOT NULL,
    mc_seqno INTEGER NOT NULL, account TEXT NOT NULL, lt INTEGER NOT NULL, hash BLOB NOT NULL,
    in_hash BLOB, wire TEXT NOT NULL, PRIMARY KEY (workchain, shard, seqno, place)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS tx_account ON tx (account, lt);
  CREATE INDEX IF NOT EXISTS tx_hash ON tx (hash);
  CREATE INDEX IF NOT EXISTS tx_in_hash ON tx (in_hash);
  CREATE INDEX IF NOT EXISTS tx_mc ON tx (mc_seqno);
  CREATE TABLE IF NOT EXISTS state (
    account TEXT NOT NULL, mc_seqno INTEGER NOT NULL, boc TEXT NOT NULL,
    PRIMARY KEY (account, mc_seqno)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS state_mc ON state (mc_seqno);
  CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY, boc TEXT NOT NULL, external INTEGER NOT NULL);
`

type Row = Record<string, unknown>
/** A transaction with where it stands. */
export type FoundTransaction = {
  wire: string
  workchain: number
  shard: string
  seqno: number
  mc_seqno: number
}

const shardText = (shard: bigint): string => shard.toString(16).padStart(16, '0')

/** Opens the chain's file, or makes it. */
export function createStore(path = ':memory:') {
  const db = new DatabaseSync(path)
  // The system keeps what is written when the process is killed; that is all that is promised.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000')
  db.exec(schema)
  const statements = new Map<string, StatementSync>()
  const prepare = (sql: string): StatementSync => {
    let statement = statements.get(sql)
    if (!statement) {
      statement = db.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  const run = (sql: string, ...values: (string | number | bigint | Buffer | null)[]) =>
    prepare(sql).run(...values)
  const first = (sql: string, ...values: (string | number | bigint | Buffer)[]) =>
    prepare(sql).get(...values) as Row | undefined
  const all = (sql: string, ...values: (string | number | bigint | Buffer)[]) =>
    prepare(sql).all(...values) as Row[]

  const atOnce = (work: () => void): void => {
    db.exec('BEGIN IMMEDIATE')
    try {
      work()
      db.exec('COMMIT')
    } catch (error) {
      db.exec('ROLLBACK')
      throw error
    }
  }
  const putMeta = (key: string, value: string) =>
    run(
      'INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
      key,
      value,
    )
  const addMessage = (boc: string, external: boolean): number =>
    Number(
      run('INSERT INTO message (boc, external) VALUES (?, ?)', boc, external ? 1 : 0)
        .lastInsertRowid,
    )

  return {
    meta: (key: string): string | undefined =>
      first('SELECT value FROM meta WHERE key = ?', key)?.value as string | undefined,
    addMessage,
    messages: () =>
      all('SELECT id, boc, external FROM message ORDER BY id').map((row) => ({
        id: Number(row.id),
        boc: String(row.boc),
        external: row.external === 1,
      })),
    /** Gives the ids of the messages that wait. */
    commit: ({ blocks, states, taken, waiting, meta }: Commit): number[] => {
      const ids: number[] = []
      atOnce(() => {
        for (const { block, transactions } of blocks) {
          const { workchain, shard, seqno, root_hash } = block.id
          const place = [workchain, shardText(shard), seqno] as const
          const content = JSON.stringify(block, toJson)
          run(
            'INSERT INTO block VALUES (?, ?, ?, ?, ?, ?)',
            ...place,
            block.mc_seqno,
            root_hash,
            content,
          )
          for (const [index, { account, lt, hash, in_hash, wire }] of transactions.entries())
            run(
              'INSERT INTO tx VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
              ...place,
              index,
              block.mc_seqno,
              account,
              lt,
              hash,
              in_hash,
              wire,
            )
        }
        const { mc_seqno } = blocks.at(-1)!.block
        for (const [account, boc] of states)
          run(
            'INSERT INTO state VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET boc = excluded.boc',
            account,
            mc_seqno,
            boc,
          )
        for (const id of taken) run('DELETE FROM message WHERE id = ?', id)
        for (const { boc, external } of waiting) ids.push(addMessage(boc, external))
        for (const [key, value] of Object.entries(meta)) putMeta(key, value)
      })
      return ids
    },
    block: (workchain: number, shard: bigint, seqno: number): Block | undefined => {
      const row = first(
        'SELECT content FROM block WHERE workchain = ? AND shard = ? AND seqno = ?',
        workchain,
        shardText(shard),
        seqno,
      )
      return row && readBlock(String(row.content))
    },
    /** Every block that a masterchain block commits, its own included. */
    blocksOf: (mc_seqno: number): Block[] =>
      all('SELECT content FROM block WHERE mc_seqno = ?', mc_seqno).map(({ content }) =>
        readBlock(String(content)),
      ),
    head: (): Block | undefined => {
      const row = first(
        'SELECT content FROM block WHERE workchain = ? AND shard = ? ORDER BY seqno DESC LIMIT 1',
        masterchain,
        shardText(wholeShard),
      )
      return row && readBlock(String(row.content))
    },
    transactionsOf: (id: Pick<BlockId, 'workchain' | 'shard' | 'seqno'>): FoundTransaction[] =>
      all(
        'SELECT * FROM tx WHERE workchain = ? AND shard = ? AND seqno = ? ORDER BY place',
        id.workchain,
        shardText(id.shard),
        id.seqno,
      ).map(readTransaction),
    transactionsByMaster: (mc_seqno: number): FoundTransaction[] =>
      all('SELECT * FROM tx WHERE mc_seqno = ? ORDER BY lt, account', mc_seqno).map(
        readTransaction,
      ),
    transactionsByAccount: (
      account: string,
      { below, above, limit }: { below: bigint; above: bigint; limit: number },
    ): FoundTransaction[] =>
      all(
        'SELECT * FROM tx WHERE account = ? AND lt <= ? AND lt > ? ORDER BY lt DESC LIMIT ?',
        account,
        below,
        above,
        limit,
      ).map(readTransaction),
    transactionByHash: (hash: Buffer): FoundTransaction | undefined =>
      all('SELECT * FROM tx WHERE hash = ?', hash).map(readTransaction)[0],
    transactionByMessage: (in_hash: Buffer): FoundTransaction | undefined =>
      all('SELECT * FROM tx WHERE in_hash = ?', in_hash).map(readTransaction)[0],
    /** The state of an account as of a masterchain block. */
    state: (account: string, mc_seqno: number): string | undefined =>
      first(
        'SELECT boc FROM state WHERE account = ? AND mc_seqno <= ? ORDER BY mc_seqno DESC LIMIT 1',
        account,
        mc_seqno,
      )?.boc as string | undefined,
    /** Every account that there is. */
    accounts: (): string[] =>
      all('SELECT DISTINCT account FROM state').map(({ account }) => String(account)),
    genesis: (states: ReadonlyMap<string, string>, meta: Record<string, string>): void =>
      atOnce(() => {
        for (const [account, boc] of states) run('INSERT INTO state VALUES (?, 0, ?)', account, boc)
        for (const [key, value] of Object.entries(meta)) putMeta(key, value)
      }),
    /** Forgets blocks below a masterchain block, as a node does that is not an archive. */
    prune: (below: number): void =>
      atOnce(() => {
        run('DELETE FROM tx WHERE mc_seqno < ?', below)
        run('DELETE FROM block WHERE mc_seqno < ?', below)
        run(
          `DELETE FROM state WHERE mc_seqno < ?1 AND EXISTS (SELECT 1 FROM state AS newer
           WHERE newer.account = state.account AND newer.mc_seqno > state.mc_seqno
             AND newer.mc_seqno <= ?1)`,
          below,
        )
      }),
    close: (): void => db.close(),
  }
}

const toJson = (_: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return value.toString()
  // Buffers arrive here as what their own toJSON made of them.
  const { type, data } = (value ?? {}) as { type?: unknown; data?: number[] }
  return type === 'Buffer' && data ? Buffer.from(data).toString('base64') : value
}

type Written<value> = {
  [key in keyof value]: value[key] extends bigint | Buffer ? string : unknown
}

const readId = (id: Written<BlockId>): BlockId => ({
  workchain: Number(id.workchain),
  shard: BigInt(id.shard),
  seqno: Number(id.seqno),
  root_hash: Buffer.from(id.root_hash, 'base64'),
  file_hash: Buffer.from(id.file_hash, 'base64'),
})

function readBlock(content: string): Block {
  const block = JSON.parse(content)
  return {
    ...block,
    id: readId(block.id),
    prev: block.prev.map(readId),
    shards: block.shards.map(readId),
    start_lt: BigInt(block.start_lt),
    end_lt: BigInt(block.end_lt),
  }
}

const readTransaction = (row: Row): FoundTransaction => ({
  wire: String(row.wire),
  workchain: Number(row.workchain),
  shard: String(row.shard),
  seqno: Number(row.seqno),
  mc_seqno: Number(row.mc_seqno),
})
