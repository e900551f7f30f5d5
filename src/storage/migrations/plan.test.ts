import { expect, test } from 'vitest'
import { readMigrations } from './files.ts'
import { lintMigration, planMigrations, splitStatements } from './plan.ts'

const files = await readMigrations()

// Written before the rules: they were released together with the code that uses them.
const before = /^00(?:0\d|1[0-5])-/

test('migrations can run beside the version before', () => {
  const found = files.filter(({ name }) => !before.test(name)).flatMap(lintMigration)
  expect(found).toEqual([])
})

const faultsOf = (sql: string) => lintMigration({ name: '0099-x', sql })

test.each([
  'drop table wallet',
  'alter table wallet drop column name',
  'alter table wallet rename column name to title',
  'alter table wallet alter column name type int8',
  'alter table wallet alter column name set not null',
  'alter table wallet add column size int8 not null',
  'alter table wallet add constraint size_check check (size > 0)',
  'create index wallet_size on wallet (size)',
])('%s needs another form', (sql) => {
  expect(faultsOf(sql)).toHaveLength(1)
  expect(faultsOf(`-- allowed: nothing reads it since 0.3.0\n${sql};`)).toEqual([])
})

test.each([
  'create table size (size_id int8 primary key); create index size_index on size (size_id)',
  'alter table wallet add column size int8',
  'alter table wallet add column size int8 not null default 0',
  'alter table wallet add constraint size_check check (size > 0) not valid',
  'alter table wallet validate constraint size_check',
  'create index concurrently wallet_size on wallet (size)',
  "insert into wallet values ('a;b')",
])('%s may be released', (sql) => {
  expect(faultsOf(sql)).toEqual([])
})

test('statements are split at semicolons outside of quotes and comments', () => {
  expect(splitStatements("-- a; b\nselect ';' ;\n\nselect 1;")).toEqual(["select ';'", 'select 1'])
})

test('a plan has the locks and how long they are held', () => {
  const [plan] = planMigrations([
    {
      name: '0099-size',
      sql: 'create table size (id int8); create index size_id on size (id); alter table wallet add column size int8; create index wallet_size on wallet (size); update wallet set size = 0',
    },
  ])
  expect(plan!.statements.map(({ table, lock, duration }) => [table, lock, duration])).toEqual([
    ['size', 'none', 'instant'],
    ['size', 'none', 'instant'],
    ['wallet', 'ACCESS EXCLUSIVE', 'instant'],
    ['wallet', 'SHARE', 'scan'],
    ['wallet', 'ROW EXCLUSIVE', 'short'],
  ])
})

test('every statement of the files has a plan', () => {
  const unknown = planMigrations(files)
    .flatMap(({ statements }) => statements)
    .filter(({ lock }) => lock === 'unknown')
  expect(unknown).toEqual([])
})
