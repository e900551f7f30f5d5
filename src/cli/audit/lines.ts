import { toTimestamp } from '../../lib/clock.ts'
import type { AuditEventRow } from '../../storage/audit/tables.ts'
import type { ChainEnds } from '../../storage/audit/verify.ts'
import { CliError } from '../cli-error.ts'

// One JSON object per line: first the ends of the chain, then the events in their order.

// The version of the format. A reader refuses any other.
const format = 'portolan audit 1'
// Bytes of the ends are base64; hashes of events are hex, as the API shows them.
const endBytes = [
  'public_key',
  'anchor_hash',
  'anchor_signature',
  'head_hash',
  'head_signature',
] as const

/** The first line of an export. */
export function formatEnds(ends: ChainEnds): string {
  const bytes = Object.fromEntries(endBytes.map((name) => [name, ends[name].toString('base64')]))
  const { anchor_sequence, head_sequence } = ends
  const times = {
    anchor_time: toTimestamp(ends.anchor_time),
    head_time: toTimestamp(ends.head_time),
  }
  return JSON.stringify({ format, anchor_sequence, head_sequence, ...times, ...bytes })
}

/** A line with an event. */
export const formatEvent = (row: AuditEventRow): string =>
  JSON.stringify({
    ...row,
    event_time: toTimestamp(row.event_time),
    detail_salt: row.detail_salt?.toString('hex') ?? null,
    detail_hash: row.detail_hash.toString('hex'),
    hash: row.hash.toString('hex'),
    signature: row.signature?.toString('base64') ?? null,
  })

type Line = Record<string, unknown>

const badFile = (number: number, cause?: unknown) =>
  new CliError(`Line ${number} of the file is not a line of an export of the audit log.`, { cause })

const parseLine = (text: string, number: number): Line => {
  try {
    const line: unknown = JSON.parse(text)
    if (typeof line === 'object' && line !== null) return line as Line
  } catch (error) {
    throw badFile(number, error)
  }
  throw badFile(number)
}

// A missing field becomes empty bytes, and then another hash: verification names the event.
const bytesOf = (line: Line, name: string, encoding: 'hex' | 'base64'): Buffer =>
  Buffer.from(String(line[name] ?? ''), encoding)

/** Reads the first line. */
export function parseEnds(text: string): ChainEnds {
  const line = parseLine(text, 1)
  if (line.format !== format) throw badFile(1)
  const bytes = Object.fromEntries(endBytes.map((name) => [name, bytesOf(line, name, 'base64')]))
  return {
    ...(bytes as Pick<ChainEnds, (typeof endBytes)[number]>),
    anchor_sequence: Number(line.anchor_sequence),
    head_sequence: Number(line.head_sequence),
    anchor_time: new Date(String(line.anchor_time)),
    head_time: new Date(String(line.head_time)),
  }
}

/** Reads a line with an event. What is missing or of another form makes another hash. */
export function parseEvent(text: string, number: number): AuditEventRow {
  const line = parseLine(text, number)
  const event_time = new Date(String(line.event_time))
  if (Number.isNaN(event_time.getTime())) throw badFile(number)
  return {
    ...(line as AuditEventRow),
    event_time,
    detail_salt: line.detail_salt ? bytesOf(line, 'detail_salt', 'hex') : null,
    detail_hash: bytesOf(line, 'detail_hash', 'hex'),
    hash: bytesOf(line, 'hash', 'hex'),
    signature: line.signature ? bytesOf(line, 'signature', 'base64') : null,
  }
}
