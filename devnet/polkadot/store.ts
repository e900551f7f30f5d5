import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { deserialize, serialize } from 'node:v8'
import type { Block } from './author.ts'
import { fromHex, keyBytes, keyText, toHex } from './bytes.ts'
import type { Changes, State } from './state.ts'

/** A block without its state. */
export type StoredBlock = Omit<Block, 'state' | 'changes'>

/** What a chain keeps: on disk, or in memory when there is no folder. */
export type Store = {
  /** What was noted at the beginning; undefined in a new store. */
  facts(): unknown
  begin(facts: unknown, genesis: Block): void
  /** Written before the block is shown to clients. */
  addBlock(block: Block): void
  /** Makes blocks final, in their order, and forgets what can be no longer. */
  finalize(blocks: readonly Block[]): void
  find(hash: string): StoredBlock | undefined
  /** The final block of that number. */
  findFinal(number: number): StoredBlock | undefined
  /** The state after a final block; undefined when it is not kept any more. */
  stateAt(number: number): State | undefined
  /** The last final block with all its state, and what stands above it, parents first. */
  load(): { final: StoredBlock; state: Changes; above: (StoredBlock & { changes: Changes })[] }
  close(): void
}

const schema = `
  create table if not exists fact (value blob not null);
  create table if not exists block (
    hash blob primary key, number integer not null, parent_hash blob not null, header blob not null,
    extrinsics blob not null, changes blob, is_final integer not null);
  create index if not exists block_number on block (number);
  create table if not exists state (
    key blob not null, number integer not null, value blob, primary key (key, number)) without rowid;
`

type Row = {
  hash: Uint8Array
  number: number
  parent_hash: Uint8Array
  header: Uint8Array
  extrinsics: Uint8Array
  changes: Uint8Array | null
}

const toBlock = (row: Row): StoredBlock => ({
  number: row.number,
  hash: toHex(row.hash),
  parentHash: toHex(row.parent_hash),
  header: row.header,
  extrinsics: deserialize(row.extrinsics) as Uint8Array[],
})

const pruneEvery = 64

/** Opens the store of a chain; the states of that many final blocks stay readable. */
export function openStore({ directory, history }: { directory?: string; history: number }): Store {
  if (directory !== undefined) mkdirSync(directory, { recursive: true })
  const db = new DatabaseSync(directory === undefined ? ':memory:' : join(directory, 'chain.db'))
  // What the system has taken survives the end of this process, which is all that is promised.
  db.exec('pragma journal_mode = wal; pragma synchronous = off;')
  db.exec(schema)
  const insertBlock = db.prepare('insert or ignore into block values (?, ?, ?, ?, ?, ?, ?)')
  const finalizeBlock = db.prepare('update block set is_final = 1, changes = null where hash = ?')
  const dropForks = db.prepare('delete from block where is_final = 0 and number <= ?')
  const insertValue = db.prepare('insert or replace into state values (?, ?, ?)')
  const byHash = db.prepare('select * from block where hash = ?')
  const byNumber = db.prepare('select * from block where number = ? and is_final = 1')
  const valueAt = db.prepare(
    'select value from state where key = ? and number <= ? order by number desc limit 1',
  )
  const keyAfter = db.prepare('select key from state where key > ? order by key limit 1')
  const pruneOld = db.prepare(
    `delete from state where number < ?1 and exists (
       select 1 from state newer
       where newer.key = state.key and newer.number > state.number and newer.number <= ?1)`,
  )
  const newest = db.prepare('select max(number) as number from block where is_final = 1')
  const lastFinal = () => (newest.get() as { number: number }).number

  const inTransaction = (work: () => void): void => {
    db.exec('begin')
    try {
      work()
      db.exec('commit')
    } catch (error) {
      db.exec('rollback')
      throw error
    }
  }
  const insert = (block: Block, isFinal: boolean) =>
    insertBlock.run(
      fromHex(block.hash),
      block.number,
      fromHex(block.parentHash),
      block.header,
      serialize(block.extrinsics),
      isFinal ? null : serialize(block.changes),
      isFinal ? 1 : 0,
    )
  const insertState = ({ number, changes }: Block) => {
    for (const [key, value] of changes) insertValue.run(keyBytes(key), number, value)
  }
  const get = (number: number) => (key: string) =>
    (valueAt.get(keyBytes(key), number) as { value: Uint8Array | null } | undefined)?.value ?? null

  return {
    facts: () => {
      const row = db.prepare('select value from fact').get() as { value: Uint8Array } | undefined
      return row && deserialize(row.value)
    },
    begin: (facts, genesis) =>
      inTransaction(() => {
        db.prepare('insert into fact values (?)').run(serialize(facts))
        insert(genesis, true)
        insertState(genesis)
      }),
    addBlock: (block) => void insert(block, false),
    finalize: (blocks) =>
      inTransaction(() => {
        for (const block of blocks) {
          insertState(block)
          finalizeBlock.run(fromHex(block.hash))
        }
        const { number } = blocks.at(-1)!
        dropForks.run(number)
        if (number > history && number % pruneEvery === 0) pruneOld.run(number - history)
      }),
    find: (hash) => {
      const row = byHash.get(fromHex(hash)) as Row | undefined
      return row && toBlock(row)
    },
    findFinal: (number) => {
      const row = byNumber.get(number) as Row | undefined
      return row && toBlock(row)
    },
    stateAt: (number) => {
      if (number < lastFinal() - history) return undefined
      const at = get(number)
      return {
        get: at,
        next: (after) => {
          for (let key = after; ; ) {
            const row = keyAfter.get(keyBytes(key)) as { key: Uint8Array } | undefined
            if (!row) return null
            key = keyText(row.key)
            if (at(key) !== null) return key
          }
        },
      }
    },
    load: () => {
      const number = lastFinal()
      const rows = db
        .prepare(
          `select key, value, max(number) as number from state group by key having value is not null`,
        )
        .all() as { key: Uint8Array; value: Uint8Array }[]
      const above = db
        .prepare('select * from block where is_final = 0 order by number, rowid')
        .all() as Row[]
      return {
        final: toBlock(byNumber.get(number) as Row),
        state: new Map(rows.map(({ key, value }) => [keyText(key), value])),
        above: above.map((row) => ({
          ...toBlock(row),
          changes: deserialize(row.changes!) as Changes,
        })),
      }
    },
    close: () => db.close(),
  }
}
