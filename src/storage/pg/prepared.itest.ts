import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createStatement, mostPrepared, prepared, withPrepared } from './prepared.ts'

const { connection } = await freshDatabase()
const pool = new pg.Pool({ ...connection, max: 1 })
afterAll(() => pool.end())
await pool.query('create table item (value text primary key)')

const run = (text: string) => {
  const statement = createStatement(pool, text)
  return (...values: string[]) =>
    new Promise<number>((resolve, reject) => {
      statement(values, (error, rowCount) => (error ? reject(error) : resolve(rowCount)))
    })
}
const known = async (): Promise<string[]> => {
  const { rows } = await pool.query('select statement from pg_prepared_statements')
  return rows.map(({ statement }) => statement)
}
const text = 'insert into item select unnest($1::text[]) on conflict do nothing'

test('a statement is prepared once per connection and returns the number of rows', async () => {
  const insert = run(text)
  expect(await insert('{a,b}')).toBe(2)
  expect(await insert('{b,c}')).toBe(1)
  expect(await insert('{a,b,c}')).toBe(0)
  expect((await known()).filter((statement) => statement === text)).toEqual([text])
})

test('an error reaches the caller and leaves the connection usable', async () => {
  const insert = run('insert into item values ($1)')
  expect(await insert('d')).toBe(1)
  await expect(insert('d')).rejects.toMatchObject({ code: '23505' })
  expect(await insert('e')).toBe(1)
})

test('a statement that the server has lost runs without a name from then on', async () => {
  const insert = run('insert into item values ($1) on conflict do nothing')
  expect(await insert('f')).toBe(1)
  await pool.query('deallocate all')
  expect(await insert('g')).toBe(1)
  expect(await insert('h')).toBe(1)
  expect(await known()).toEqual([])
})

test('texts beyond the limit are planned each time', async () => {
  const client = await withPrepared(pool).connect()
  const ask = async (at: number) =>
    await client.query(`${prepared} select ${at}::int as value where $1::int = 0`, [0])
  for (let at = 0; at < mostPrepared + 5; at++)
    expect((await ask(at)).rows).toEqual([{ value: at }])
  expect((await ask(0)).rows).toEqual([{ value: 0 }])
  client.release()
  const names = (await known()).filter((statement) => statement.startsWith(prepared))
  expect(names.length).toBe(mostPrepared)
})
