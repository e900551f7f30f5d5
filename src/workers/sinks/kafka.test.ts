import { MultipleErrors, ProtocolError, ResponseError } from '@platformatic/kafka'
import { expect, test } from 'vitest'
import { isTooLarge } from './kafka.ts'

const produce = 0
const tooLargeCode = 10

test('a refusal for the size is found in what brokers and partitions answered', () => {
  const refused = new ResponseError(produce, 7, { '/responses/0': [tooLargeCode, null] }, {})
  expect(isTooLarge(refused)).toBe(true)
  expect(isTooLarge(new MultipleErrors('produce failed', [new Error('other'), refused]))).toBe(true)
  expect(isTooLarge(new ProtocolError('RECORD_LIST_TOO_LARGE'))).toBe(true)
  expect(isTooLarge(new ProtocolError('NOT_LEADER_OR_FOLLOWER'))).toBe(false)
  expect(isTooLarge(new Error('MESSAGE_TOO_LARGE'))).toBe(false)
})
