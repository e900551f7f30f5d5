import { describe, expect, it } from 'vitest'
import { errors } from '../../src/contract/errors/errors.ts'
import { type Entry, pathOf } from '../../src/contract/operations/catalogue.ts'
import { type Check, createCheck } from '../../src/contract/validate.ts'
import type { Service } from '../../src/contract/variant.ts'
import { parseJson } from '../../src/lib/json/json.ts'
import { type Answer, startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { authHeaders } from '../helpers/signer.ts'
import {
  type Case,
  excludedFields,
  randomRequests,
  repeatedFields,
  unknownFields,
  wrongBodies,
  wrongFields,
} from './bad-requests.ts'
import { operations } from './sample-requests.ts'

/** Set by the campaign, which sends more and chooses them by chance. */
const wanted = process.env.BAD_REQUESTS
const casesPerOperation = Number(wanted ?? 100)
/** A body that no operation can read is sent to one operation in so many. */
const bodyShare = wanted === undefined ? 3 : 1

/** Sends at least 100 bad requests to every operation of some services. */
export const describeBadRequests = async (tags: readonly Service[]): Promise<void> => {
  const unlimited = {
    per_second_limit: -1,
    per_hour_limit: -1,
    per_day_limit: -1,
    per_month_limit: -1,
  }
  const service = await startTestApp({
    config: { limits: unlimited },
    chains: createScriptedChains(),
  })
  const { admin } = await service.createTenant()
  const seed = wanted === undefined ? 19 : Date.now()
  const mine = operations.filter(([, entry]) => tags.includes(entry.service))

  const send = (entry: Entry, { body, headers }: Case): Promise<Answer> => {
    const path = pathOf(entry.service, entry.name)
    return service.send(path, {
      body,
      headers: {
        'content-type': 'application/json',
        ...authHeaders(admin, { path, body }),
        ...headers,
      },
    })
  }

  describe('a bad request', () => {
    it.each(mine)(
      'to %s is refused with a problem that names the field',
      {
        timeout: 60_000 + casesPerOperation * 100,
      },
      async (_, entry) => {
        const index = mine.findIndex(([, one]) => one === entry)
        const fixed = [
          ...wrongBodies(entry).filter((_, at) => (at + index) % bodyShare === 0),
          ...unknownFields(entry),
          ...repeatedFields(entry),
          ...wrongFields(entry),
          ...excludedFields(entry),
        ]
        const random = randomRequests(entry, Math.max(20, casesPerOperation - fixed.length), seed)
        const cases = [...fixed, ...random]
        expect(cases.length).toBeGreaterThanOrEqual(100)
        const check = createCheck(entry)
        const answers = await Promise.all(cases.map((one) => send(entry, one)))
        const faults = cases.flatMap((one, at) =>
          faultsOf(check, one, answers[at] as Answer).map((fault) => `${one.name}: ${fault}`),
        )
        expect(faults, `seed ${seed}`).toEqual([])
      },
    )

    it('leaves the service in good health and nothing but refusals behind', async () => {
      expect((await service.send('/ready', { method: 'GET' })).status).toBe(200)
      const loud = service.log.lines().filter(({ level }) => level === 'error' || level === 'fatal')
      expect(loud).toEqual([])
    })
  })
}

const faultsOf = (check: Check, one: Case, { status, headers, text, json }: Answer): string[] => {
  const faults: string[] = []
  const must = (fact: boolean, fault: string) => {
    if (!fact) faults.push(`${fault}: ${status} ${text.slice(0, 500)}`)
  }
  if (one.status !== undefined) must(status === one.status, `must answer ${one.status}`)
  // A request that chance left valid may be carried out, or be one for a chain that is not here (Q).
  const valid = one.status === undefined && isValid(check, one.body)
  const unserved = status === 501 || json?.reason === 'CHAIN_NOT_CONFIGURED'
  if (status === 200 || unserved) must(valid, 'took a bad request')
  must(status < 500 || unserved, 'failed')
  if (status === 200) return faults
  must(headers['content-type'] === 'application/problem+json', 'no problem body')
  const row = errors[json?.reason as keyof typeof errors]
  must(row?.status === status && row.code === json.code, 'not of the table')
  must(typeof json?.request_id === 'string', 'without a request id')
  must(text.length < 500_000, 'a huge answer')
  const fields: string[] = (json?.errors ?? []).map(({ field }: { field: string }) => field)
  if (json?.reason === 'INVALID_REQUEST') must(fields.length > 0, 'names nothing')
  // Only a body that is not an object at all has no field to blame.
  if (json?.reason === 'INVALID_REQUEST' && isObject(one.body))
    must(!fields.includes(''), 'leaves the field empty')
  const { field } = one
  if (field !== undefined)
    must(
      fields.some(
        (name) => name === field || name.startsWith(`${field}.`) || name.startsWith(`${field}[`),
      ),
      `must name ${field}`,
    )
  return faults
}

const isObject = (body: Case['body']): boolean => {
  const parsed = parseJson(Buffer.from(body as string))
  return (
    parsed.ok &&
    typeof parsed.value === 'object' &&
    !Array.isArray(parsed.value) &&
    parsed.value !== null
  )
}

const isValid = (check: Check, body: Case['body']): boolean => {
  const parsed = parseJson(Buffer.from(body as string))
  if (!parsed.ok) return false
  try {
    check(parsed.value)
    return true
  } catch {
    return false
  }
}
