// Sinks of a document. What readers of a broker have a position in names a sink: its type, with its subject prefix or topic.

import { openCredentials, type SinkCredentials } from '../../domain/sinks/settings.ts'
import { listReceivers } from '../../storage/webhooks/delivery-claims.ts'
import type { ChainHere } from './chain-place.ts'
import type { ChainPart } from './document.ts'
import type { PlannedPart, PlanTools } from './plan-tools.ts'
import { longEvent, shortEvent } from './plan-webhooks.ts'
import { type Call, field, fromTo, type Ref, type Step, sameMembers } from './step.ts'

type SinkPart = NonNullable<ChainPart['sinks']>[number]
type StoredSink = {
  sink_id: string
  sink_type: string
  servers: readonly string[]
  tls: boolean
  subject_prefix: string
  topic: string
  confirmation: number
  events: readonly string[]
  enabled: boolean
  credentials: SinkCredentials
}

const misplaced = {
  nats: ['topic', 'sasl_mechanism'],
  kafka: ['subject_prefix', 'token'],
} as const

// As of a webhook (`plan-webhooks.ts`).
const defaultConfirmation = 10

/** Plans the sinks of a chain. */
export async function planSinks(
  { sinks }: ChainPart,
  here: ChainHere,
  tools: PlanTools,
): Promise<PlannedPart> {
  const planned: PlannedPart = { steps: [], extras: [] }
  if (!sinks) return planned
  const { at, organization, domain } = here
  const stored = await listStored(here, tools)
  const kept = new Set<string>()
  const seen = new Set<string>()
  for (const [index, sink] of sinks.entries()) {
    const path = [...here.path, 'sinks', index]
    const subject = nameOf(sink, at)
    if (seen.has(subject)) tools.refuse(path, `is the ${subject}, which the document has already.`)
    seen.add(subject)
    for (const name of misplaced[sink.sink_type])
      if (sink[name] !== undefined)
        tools.refuse([...path, name], `has no meaning for ${sink.sink_type}.`)
    if (sink.sasl_mechanism !== undefined && sink.username === undefined)
      tools.refuse([...path, 'sasl_mechanism'], 'needs a username.')
    const same = stored.filter((one) => nameOf(shown(one), at) === subject)
    if (same.length > 1) {
      tools.refuse(path, `has ${same.length} sinks already. Remove all but one.`)
      continue
    }
    const own = { ...here, path }
    if (same[0]) {
      kept.add(same[0].sink_id)
      planned.steps.push(...changeOf(sink, same[0], own, tools))
    } else planned.steps.push(creationOf(sink, own, tools))
  }
  for (const one of stored.filter(({ sink_id }) => !kept.has(sink_id))) {
    const subject = nameOf(shown(one), at)
    const { sink_id } = one
    if (!tools.prune) planned.extras.push(`${domain}: ${subject}`)
    else
      planned.steps.push({
        ...{ mark: '-', subject, details: [], path: [...here.path, 'sinks'] },
        calls: [
          { where: { at, organization }, operation: 'RemoveSink', request: () => ({ sink_id }) },
        ],
      })
  }
  return planned
}

type Named = Pick<SinkPart, 'sink_type' | 'subject_prefix' | 'topic'>

// The default of both is that of RegisterSink.
const placeOf = ({ sink_type, subject_prefix, topic }: Named): string =>
  (sink_type === 'nats' ? subject_prefix : topic) || 'portolan'

const nameOf = (sink: Named, at: string): string =>
  `sink ${sink.sink_type} ${placeOf(sink)} on ${at}`

const shown = ({ sink_type, subject_prefix, topic }: StoredSink): Named => ({
  ...{ sink_type: sink_type.replace('SINK_TYPE_', '').toLowerCase() as Named['sink_type'] },
  ...{ subject_prefix, topic },
})

function creationOf(sink: SinkPart, { at, organization, path }: ChainHere, tools: PlanTools): Step {
  const { sink_type, servers, tls, confirmation = defaultConfirmation, events, enabled } = sink
  const where = { at, organization }
  // Filled when the sink is registered; the later call of the step reads it then.
  const ref: Ref = {}
  const credentials = credentialsOf(sink, path, tools)
  const place = placeOf(sink)
  const details = [
    field('servers', servers),
    ...(tls === false ? [field('tls', false)] : []),
    ...Object.keys(credentials ?? {}).map((name) => field('credential', name)),
    field('confirmation', confirmation),
    ...(events ? [field('events', events)] : []),
    ...(enabled === false ? [field('enabled', false)] : []),
  ]
  const calls: Call[] = [
    {
      where,
      operation: 'RegisterSink',
      request: () => ({
        ...{ sink_type: `SINK_TYPE_${sink_type.toUpperCase()}`, servers, confirmation },
        ...(sink_type === 'nats' ? { subject_prefix: place } : { topic: place }),
        ...(tls !== undefined && { tls }),
        ...(events && { events: events.map(longEvent) }),
        ...credentials,
      }),
      onAnswer: ({ sink_id }) => {
        ref.id = sink_id as string
      },
    },
    ...(enabled === false ? [ableCall(where, ref, false)] : []),
  ]
  return { mark: '+', subject: nameOf(sink, at), details, path, calls }
}

function changeOf(
  sink: SinkPart,
  stored: StoredSink,
  { at, organization, path }: ChainHere,
  tools: PlanTools,
): Step[] {
  const { sink_id } = stored
  const where = { at, organization }
  const { servers, tls, confirmation, events, enabled } = sink
  const details: string[] = []
  const change: Record<string, unknown> = {}
  const calls: Call[] = []
  // UpdateSink has neither: what is published would differ from what readers have got.
  const events_before = stored.events.map(shortEvent)
  if (confirmation !== undefined && confirmation !== stored.confirmation)
    tools.refuse([...path, 'confirmation'], fixed(stored.confirmation))
  if (events && !sameMembers(events, events_before))
    tools.refuse([...path, 'events'], fixed(events_before.join(', ')))
  const wanted = servers.map(canonicalServer)
  // Their order is the order in which they are tried.
  if (wanted.join() !== stored.servers.join()) {
    details.push(fromTo('servers', stored.servers, wanted))
    change.servers = servers
  }
  if (tls !== undefined && tls !== stored.tls) {
    details.push(fromTo('tls', stored.tls, tls))
    change.tls = tls
  }
  const credentials = credentialsOf(sink, path, tools)
  const differ =
    credentials && credentialNames.some((name) => credentials[name] !== stored.credentials[name])
  // The diff shows that they differ, not what they are.
  if (differ) details.push('credentials: changed')
  // The same ones too: UpdateSink does not send what is stored to other servers.
  if (details.length > 0) Object.assign(change, credentials)
  // As UpdateSink has it.
  const isElsewhere = wanted.some((server) => !stored.servers.includes(server))
  const secret = secretNames.find((name) => stored.credentials[name] !== undefined)
  if (!credentials && secret && (isElsewhere || (tls === false && stored.tls)))
    tools.refuse(
      [...path, secret],
      `is needed with ${isElsewhere ? 'other servers' : 'a connection without encryption'}: the stored one is not sent there.`,
    )
  if (details.length > 0)
    calls.push({ where, operation: 'UpdateSink', request: () => ({ sink_id, ...change }) })
  if (enabled !== undefined && enabled !== stored.enabled) {
    details.push(fromTo('enabled', stored.enabled, enabled))
    calls.push(ableCall(where, { id: sink_id }, enabled))
  }
  if (calls.length === 0) return []
  return [{ mark: '~', subject: nameOf(sink, at), details, path, calls }]
}

const fixed = (before: unknown): string =>
  `differs from that of the sink, which is ${before} and cannot change. Remove the sink, or use another subject_prefix or topic.`

// As `checkServers` stores them. What is no host and port is refused by the operation.
const canonicalServer = (text: string): string => {
  const port = /:(\d+)$/.exec(text)?.[1]
  const address = `https://${text}`
  return port !== undefined && URL.canParse(address) ? `${new URL(address).hostname}:${port}` : text
}

const credentialNames = ['username', 'password', 'token', 'sasl_mechanism'] as const
// In the order in which UpdateSink names them.
const secretNames = ['token', 'password'] as const

/** What authenticates, with references resolved; undefined where the document has none of it. */
function credentialsOf(
  { username, password, token, sasl_mechanism }: SinkPart,
  path: ChainHere['path'],
  tools: PlanTools,
): SinkCredentials | undefined {
  if (username === undefined && password === undefined && token === undefined) return undefined
  const secret = (name: string, value: string) => tools.secret(value, [...path, name])
  return {
    ...(username !== undefined && { username: secret('username', username) }),
    ...(password !== undefined && { password: secret('password', password) }),
    ...(token !== undefined && { token: secret('token', token) }),
    ...(sasl_mechanism !== undefined && { sasl_mechanism }),
  }
}

const ableCall = (where: Call['where'], ref: Ref, enabled: boolean): Call => ({
  where,
  operation: enabled ? 'EnableSink' : 'DisableSink',
  request: () => ({ sink_id: ref.id ?? 'new' }),
})

async function listStored(
  { at, organization }: ChainHere,
  tools: PlanTools,
): Promise<StoredSink[]> {
  if (organization.id === undefined) return []
  const { sinks } = await tools.read(at, organization.id)('ListSinks', {})
  const { db, sealer } = tools.local.context
  // No operation shows credentials. Without them every run would change them.
  const rows = await listReceivers(
    db,
    sinks.map(({ sink_id }) => sink_id),
  )
  const sealed = new Map(rows.map((row) => [row.webhook_id, row.secret_sealed]))
  return sinks.map((sink) => {
    const secret = sealed.get(sink.sink_id)
    const { events = [] } = sink as { events?: readonly string[] }
    const credentials = secret ? openCredentials(sealer, sink.sink_id, secret) : {}
    return { ...sink, events, credentials }
  })
}
