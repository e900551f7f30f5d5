// What `portolan listen` says of deliveries: signature, duplicates and missing numbers. It checks with the published client,
// as a receiver would, so that it also shows whether the documented way works.

import { verifyWebhook } from '../../../client/src/webhook.ts'
import { decimalText, tokenUnit } from '../../app/embedded/event-line.ts'
import type { ReceivedAttempt } from './receiver.ts'

type Check = { verified: boolean | null; problem: string }

type Body = {
  webhook_id?: string
  webhook_history_id?: string
  data?: {
    sequence?: number
    test?: boolean
    transaction_hash?: string
    transaction_digest?: string
    confirmations?: number
    transfers?: Record<string, unknown>[]
    transaction?: { transaction_id?: string; transaction_state?: string }
  }
}

/** Checks deliveries and describes them, each in some lines of text or one of JSON. */
export function createJournal({ secrets, json }: { secrets: readonly string[]; json: boolean }) {
  // For the life of one command on a developer's machine, so without a bound of its own.
  const seen = new Set<string>()
  const highest = new Map<string, number>()
  const missing = new Map<string, Set<number>>()
  const counts = { deliveries: 0, refused: 0 }

  const check = async (delivery: ReceivedAttempt): Promise<Check> => {
    if (secrets.length === 0) return { verified: null, problem: '' }
    return await verifyWebhook({ secret: secrets, ...delivery }).then(
      () => ({ verified: true, problem: '' }),
      (error: Error) => ({ verified: false, problem: error.message }),
    )
  }

  // A receiver that began in the middle has missed nothing that it was there for.
  const count = ({ webhook_id = '', data }: Body): number[] => {
    const sequence = data?.sequence
    if (sequence === undefined) return []
    const open = missing.get(webhook_id) ?? new Set<number>()
    missing.set(webhook_id, open)
    // A retry may arrive after later notifications.
    open.delete(sequence)
    const last = highest.get(webhook_id) ?? sequence - 1
    const skipped: number[] = []
    // Bounded: without a secret any sender can claim any sequence.
    for (let number = last + 1; number < sequence && skipped.length < 1_000; number++)
      skipped.push(number)
    for (const number of skipped) open.add(number)
    highest.set(webhook_id, Math.max(last, sequence))
    return skipped
  }

  return {
    enter: async (delivery: ReceivedAttempt): Promise<string> => {
      counts.deliveries++
      const { verified, problem } = await check(delivery)
      if (verified === false) counts.refused++
      const body = parse(delivery.body)
      const id = String(delivery.headers['webhook-id'] ?? '')
      const repeated = seen.has(id)
      seen.add(id)
      // A forged delivery must not change what counts as missing.
      const skipped = verified === false ? [] : count(body)
      if (json) return JSON.stringify({ verified, problem, repeated, skipped, body })
      const mark = verified === null ? 'not checked' : verified ? 'verified' : `REFUSED: ${problem}`
      return [
        `#${body.data?.sequence ?? '?'}  ${mark}${repeated ? ', delivered before' : ''}  ${subject(body)}`,
        ...(body.data?.transfers ?? []).map(transferLine),
        ...(skipped.length > 0 ? [`    not here yet: ${skipped.join(', ')}`] : []),
      ].join('\n')
    },
    summary: (): string => {
      const open = [...missing.values()].reduce((sum, numbers) => sum + numbers.size, 0)
      return `${counts.deliveries} deliveries, ${counts.refused} refused, ${open} numbers missing.`
    },
  }
}

const parse = (body: Buffer): Body => {
  try {
    return JSON.parse(body.toString('utf8')) as Body
  } catch {
    return {}
  }
}

function subject({ data }: Body): string {
  if (data?.test) return 'test notification'
  if (data?.transaction)
    return `transaction ${data.transaction.transaction_id} is ${data.transaction.transaction_state}`
  const name = data?.transaction_hash ?? data?.transaction_digest
  return name === undefined
    ? 'no notification'
    : `${name}, ${data?.confirmations} confirmation${data?.confirmations === 1 ? '' : 's'}`
}

const transferLine = (transfer: Record<string, unknown>): string => {
  const { asset_type, value, from, to, transfer_state, status } = transfer
  const unit = tokenUnit(transfer as Parameters<typeof tokenUnit>[0])
  const amount = unit ? decimalText(String(value), unit) : `${value} ${asset_type}`
  return `    ${amount}  ${from} → ${to}  ${transfer_state ?? status ?? ''}`.trimEnd()
}
