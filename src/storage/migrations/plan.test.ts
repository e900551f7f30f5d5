import { expect, test } from 'vitest'
import { readMigrations } from './files.ts'
import { lintMigration, planMigrations } from './plan.ts'
import { splitStatements } from './statements.ts'

const files = await readMigrations()

// Written before the rules: they were released together with the code that uses them.
const before = /^00(?:0\d|1[0-5])-/

test('migrations can run beside the version before', () => {
  const found = files.filter(({ name }) => !before.test(name)).flatMap(lintMigration)
  expect(found).toEqual([])
})

test('migrations are numbered without a gap or a duplicate', () => {
  expect(files.map(({ name }) => Number(name.slice(0, 4)))).toEqual(files.map((_, at) => at + 1))
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
  const raised = "update schema_migration_range set oldest_version = '0021-sizes'"
  expect(faultsOf(`-- allowed: nothing reads it since 0.3.0\n${sql};\n${raised};`)).toEqual([])
})

test.each([
  'drop table wallet',
  'alter table wallet drop column name',
  'alter table wallet rename column name to title',
])('%s says which version may run on the result', (sql) => {
  expect(faultsOf(`-- allowed: nothing reads it since 0.3.0\n${sql};`)).toEqual([
    expect.stringContaining('set oldest_version of schema_migration_range'),
  ])
})

test.each([
  'create index concurrently wallet_size on wallet (size)',
  'create index concurrently if not exists wallet_size on wallet (size); create table size (id int8)',
  'create index concurrently if not exists wallet_size on wallet (size); update wallet set size = 0',
  'drop index concurrently wallet_size',
])('%s could not be repeated after a crash', (sql) => {
  expect(faultsOf(sql)).toEqual([expect.stringContaining('one that can be repeated')])
})

test.each([
  'create table size (size_id int8 primary key); create index size_index on size (size_id)',
  'alter table wallet add column size int8',
  'alter table wallet add column size int8 not null default 0',
  'alter table wallet add constraint size_check check (size > 0) not valid',
  'alter table wallet validate constraint size_check',
  'create index concurrently if not exists wallet_size on wallet (size)',
  'drop index concurrently if exists wallet_size; create unique index concurrently if not exists b on wallet (size) where size > 0',
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
