import { expect, test } from 'vitest'
import { createPartitionStatement } from './partitions.ts'

const partition = {
  name: 'a "b"',
  parent: 't',
  bound: "FOR VALUES FROM ('2026-11-01 00:00:00+00') TO (MAXVALUE)",
  options: ['fillfactor=70'],
  key: null,
}

test('a partition is created as it was', () => {
  expect(createPartitionStatement(partition)).toBe(
    `create table "a ""b""" partition of "t" FOR VALUES FROM ('2026-11-01 00:00:00+00') TO (MAXVALUE) with (fillfactor = '70')`,
  )
  expect(createPartitionStatement({ ...partition, key: 'LIST (kind)', options: [] })).toMatch(
    / partition by LIST \(kind\)$/,
  )
})

test.each([
  'DEFAULT',
  "FOR VALUES IN ('it''s', NULL, true)",
  'FOR VALUES WITH (modulus 4, remainder 1)',
  'FOR VALUES FROM (-1, 2.5) TO (MINVALUE, 3)',
])('%s is a bound', (bound) => {
  expect(createPartitionStatement({ ...partition, bound })).toContain(bound)
})

test.each([
  "FOR VALUES IN ('a'); drop table wallet",
  "FOR VALUES IN ('a' || pg_read_file('x'))",
  "FOR VALUES IN ('\\'a')",
  '',
])('%s is refused', (bound) => {
  expect(() => createPartitionStatement({ ...partition, bound })).toThrow('no server prints')
})

test('keys and options are refused as well', () => {
  const key = 'RANGE (a); drop table wallet'
  expect(() => createPartitionStatement({ ...partition, key })).toThrow('no server prints')
  const options = ['fillfactor) ; drop table wallet --=1']
  expect(() => createPartitionStatement({ ...partition, options })).toThrow('no server prints')
})
