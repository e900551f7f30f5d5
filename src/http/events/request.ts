import type { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { eventTypes } from '../../workers/events/event.ts'

/** What a request for a stream asks for. */
export type EventsRequest = {
  /** The chains and networks of the address or of `chains`, as `c` or `base/sepolia`; undefined for all. */
  chains: readonly string[] | undefined
  /** Whether the address names one chain. */
  isSingle: boolean
  /** Positions by chain, or the one position of a stream of one chain; empty begins with what comes. */
  after: ReadonlyMap<string, number>
  types: ReadonlySet<string> | undefined
  token: string | undefined
}

// Chain and network are optional: `/v1/events` is the stream of all chains.
const address = /^\/v1\/(?:([a-z0-9-]{1,64})\/)?(?:([a-z0-9-]{1,64})\/)?events$/
const maxChains = 100

/** Whether a path is the address of an event stream. */
export const isEventsPath = (path: string): boolean => address.test(path)

/** The key of the position in a stream of one chain. */
export const singlePosition = ''

/** Reads path, query and `Last-Event-ID`. */
export function readEventsRequest(
  path: string,
  target: string,
  lastEventId: string | string[] | undefined,
): EventsRequest {
  const [, chain, network] = address.exec(path) ?? []
  const query = target.indexOf('?')
  const asked = new URLSearchParams(query < 0 ? '' : target.slice(query + 1))
  // Refused rather than ignored: a misspelled `after` would silently begin with new events.
  for (const name of asked.keys())
    if (!known.has(name)) throw invalid(name, 'UNKNOWN_FIELD', 'Is no parameter of a stream.')
  const isSingle = chain !== undefined
  const chains = listOf(asked.get('chains'))
  if (isSingle && chains) throw invalid('chains', 'NOT_ALLOWED', 'The address names the chain.')
  if (chains && chains.length > maxChains)
    throw invalid('chains', 'INVALID_FORMAT', `Has more than ${maxChains} names.`)
  const types = listOf(asked.get('types'))
  for (const type of types ?? [])
    if (!eventTypes.some((one) => one === type))
      throw invalid('types', 'INVALID_FORMAT', `Has "${type.slice(0, 40)}", which is no type.`)
  // A browser sends it when it connects again; the address is that of its first connection.
  const after =
    (typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined) ??
    asked.get('after') ??
    undefined
  return {
    chains: isSingle ? [network === undefined ? chain : `${chain}/${network}`] : chains,
    isSingle,
    after: after === undefined ? new Map() : readPosition(after, isSingle),
    types: types && new Set(types),
    token: asked.get('token') ?? undefined,
  }
}

const known: ReadonlySet<string> = new Set(['after', 'chains', 'types', 'token'])

const listOf = (text: string | null): string[] | undefined =>
  text === null ? undefined : text.split(',').filter((part) => part !== '')

function readPosition(text: string, isSingle: boolean): Map<string, number> {
  const positions = new Map<string, number>()
  for (const part of text === '' ? [] : text.split(',')) {
    const at = part.lastIndexOf('=')
    const name = at < 0 ? singlePosition : part.slice(0, at)
    const number = part.slice(at + 1)
    // Names belong to streams of several chains only, and are required there.
    const isWhole = isSingle === (name === singlePosition) && /^\d{1,15}$/.test(number)
    if (!isWhole || positions.size >= maxChains)
      throw invalid(
        'after',
        'INVALID_FORMAT',
        isSingle
          ? 'Is the sequence of the last event, a whole number.'
          : 'Is the id of the last event, such as "c=42,t=7".',
      )
    positions.set(name, Number(number))
  }
  return positions
}

const invalid = (field: string, reason: string, detail: string): OperationError =>
  invalidRequest([{ field, reason, detail }])
