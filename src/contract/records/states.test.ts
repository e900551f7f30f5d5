import { describe, expect, test } from 'vitest'
import { notificationTypesOf, seenValues } from '../../../test/spec/records.ts'
import {
  notificationTypes,
  type TransactionState,
  transactionStateAfter,
  transactionStates,
  transactionTransitions,
  transferStates,
  transferTypes,
  webhookStatuses,
} from './states.ts'

const arrows = transactionTransitions.flatMap(({ from, to, on }) =>
  (from ?? [null]).map((state) => ({ from: state, on, to })),
)
const short = (state: string | null) => state?.replace('TRANSACTION_STATE_', '') ?? '-'

describe('managed transactions', () => {
  test('move along these arrows', () => {
    expect(
      arrows.map(({ from, on, to }) => `${short(from)} ${on} ${short(to)}`),
    ).toMatchInlineSnapshot(`
      [
        "- create CREATED",
        "CREATED sign SIGNED",
        "SIGNED sign SIGNED",
        "CREATED cancel CANCELED",
        "SIGNED cancel CANCELED",
        "CREATED expire CANCELED",
        "SIGNED send SENDING",
        "SENDING accepted SENT",
        "SENDING refused SIGNED",
        "SENDING mined MINED",
        "SENT mined MINED",
        "MINED reorganized SENT",
        "CONFIRMED reorganized SENT",
        "REVERTED reorganized SENT",
        "REPLACED reorganized SENT",
        "MINED confirmed CONFIRMED",
        "MINED reverted REVERTED",
        "SENDING replaced REPLACED",
        "SENT replaced REPLACED",
        "MINED replaced REPLACED",
      ]
    `)
  })

  test('have only arrows between states that exist, and none twice', () => {
    for (const { from, to } of arrows) {
      if (from !== null) expect(transactionStates).toContain(from)
      expect(transactionStates).toContain(to)
    }
    const triggers = arrows.map(({ from, on }) => `${from} ${on}`)
    expect(new Set(triggers).size).toBe(triggers.length)
  })

  test('reach every state', () => {
    const reached = new Set<TransactionState | null>([null])
    for (let before = -1; before !== reached.size; ) {
      before = reached.size
      for (const { from, to } of arrows) if (reached.has(from)) reached.add(to)
    }
    expect([...reached].filter((state) => state !== null).sort()).toEqual(
      [...transactionStates].sort(),
    )
  })

  test('end in the states that nothing but a reorganization leaves', () => {
    const left = new Set(arrows.filter(({ on }) => on !== 'reorganized').map(({ from }) => from))
    expect(transactionStates.filter((state) => !left.has(state)).map(short)).toEqual([
      'CONFIRMED',
      'REVERTED',
      'REPLACED',
      'CANCELED',
    ])
  })

  test('begin in one state', () => {
    expect(arrows.filter(({ from }) => from === null).map(({ to }) => to)).toEqual([
      seenValues.transaction_state,
    ])
  })

  test('have an arrow where the table has one, and none elsewhere', () => {
    const events = [...new Set(arrows.map(({ on }) => on))]
    for (const from of [null, ...transactionStates])
      for (const on of events) {
        const arrow = arrows.find((one) => one.from === from && one.on === on)
        expect(transactionStateAfter(from, on)).toBe(arrow?.to)
      }
  })

  test('cannot be canceled once they were on their way', () => {
    const cancels = arrows.filter(({ on }) => on === 'cancel').map(({ from }) => short(from))
    expect(cancels).toEqual(['CREATED', 'SIGNED'])
  })
})

test('the values that the specification shows are there', () => {
  expect(transferStates).toContain(seenValues.transfer_state)
  expect(transferTypes).toContain(seenValues.transfer_type)
  expect(webhookStatuses).toContain(seenValues.webhook_status)
})

test('every wallet service has its notification type', () => {
  expect(notificationTypes).toEqual(notificationTypesOf)
})

test.each([
  ['TRANSACTION_STATE_', transactionStates],
  ['TRANSFER_STATE_', transferStates],
  ['TRANSFER_TYPE_', transferTypes],
  ['WEBHOOK_STATUS_', webhookStatuses],
])('%s begins every value, and none is there twice', (prefix, values) => {
  expect(values.filter((value) => !value.startsWith(prefix))).toEqual([])
  expect(new Set(values).size).toBe(values.length)
})
