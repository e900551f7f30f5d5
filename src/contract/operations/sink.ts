import Type from 'typebox'
import { Confirmation, Id, optional, Timestamp, text } from '../fields.ts'
import { maxSinks } from '../limits.ts'
import { operation } from '../operation.ts'
import { saslMechanisms, sinkTypes } from '../records/states.ts'
import { list, record } from '../variant.ts'
import { Events, SinkEvents } from './webhook.ts'

// A host and a port, and no URL: user names and passwords belong to the fields that are sealed.
const Servers = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 300,
    description: 'a host and a port: `nats.example.org:4222`',
  }),
  {
    minItems: 1,
    maxItems: 10,
    description: 'the servers to connect to, in the order in which they are tried',
  },
)
const Tls = Type.Boolean({
  default: true,
  description:
    'encrypt the connection; without it only where the installation allows http endpoints',
})
// Long enough for a token (JWT) of a broker.
const Secret = Type.String({
  minLength: 1,
  maxLength: 4_096,
  description: 'stored sealed, and never shown',
})

const credentials = {
  username: optional(Type.String({ minLength: 1, maxLength: 256 })),
  password: optional(Secret),
  token: optional(Type.String({ ...Secret, description: 'NATS: authentication token' })),
  sasl_mechanism: optional(
    Type.Enum(saslMechanisms, {
      description: 'Kafka; `PLAIN` with a user name unless it is given',
    }),
  ),
}

const Sink = record('Sink', {
  sink_id: text,
  sink_type: Type.Enum(sinkTypes),
  servers: list(Type.String()),
  tls: Type.Boolean(),
  subject_prefix: Type.String({ description: 'NATS: the first token of the subjects; else empty' }),
  topic: Type.String({ description: 'Kafka: the topic; else empty' }),
  username: text,
  confirmation: Type.Integer(),
  events: Events,
  enabled: Type.Boolean(),
  disable_reason: text,
  // Advances only after an acknowledgement of the broker: delivery is at least once, and the sequence finds duplicates.
  position: Type.Integer({
    description: 'the sequence of the last event that the broker has acknowledged',
  }),
  waiting_count: Type.Integer({ description: 'events that are not published yet' }),
  publish_time: Type.Union([Timestamp, Type.Null()]),
  last_error: Type.String({ description: 'why the last attempt failed; empty after a success' }),
  create_time: Timestamp,
})

/** The operations of sinks, which publish events to a broker instead of an endpoint. */
export const sink = {
  RegisterSink: operation({
    creates: true,
    summary: 'Publish the events of all wallets to NATS JetStream or a Kafka-compatible broker.',
    description: `Every event is a CloudEvents 1.0 envelope with a sequence without gaps. An organization can have ${maxSinks} sinks on a network; they count as webhooks.`,
    services: 'TSPC',
    extension: true,
    request: {
      sink_type: Type.Enum(sinkTypes),
      servers: Servers,
      tls: optional(Tls),
      subject_prefix: optional(
        Type.String({
          pattern: '^[A-Za-z0-9_-]{1,100}$',
          default: 'portolan',
          description: 'NATS: subjects are `prefix.organization.chain.network.wallet`',
        }),
      ),
      topic: optional(
        Type.String({
          pattern: '^[A-Za-z0-9._-]{1,249}$',
          default: 'portolan',
          description: 'Kafka: the topic; keys are `organization/chain/network/wallet`',
        }),
      ),
      ...credentials,
      confirmation: Confirmation,
      events: SinkEvents,
    },
    // Not `subject_prefix` with `topic`: both have a default, and clients send defaults. The other broker's is ignored.
    exclusive: [['username', 'token']],
    response: { sink_id: text },
  }),
  ListSinks: operation({
    summary: 'List sinks with their position and last error.',
    services: 'TSPC',
    extension: true,
    request: {},
    response: { sinks: list(Sink) },
  }),
  UpdateSink: operation({
    summary: 'Change the servers or the credentials of a sink.',
    description:
      'What is left out stays as it is. Credentials are replaced together: to change one, give all. They have to be given again with servers that the sink did not have, and where `tls` is turned off: stored ones are not sent there. The next attempt is made at once.',
    services: 'TSPC',
    extension: true,
    request: {
      sink_id: Id,
      servers: optional(Servers),
      tls: optional(Type.Boolean({ description: 'encrypt the connection' })),
      ...credentials,
    },
    anyOf: ['servers', 'tls', 'username', 'password', 'token'],
    exclusive: [['username', 'token']],
    response: {},
  }),
  EnableSink: operation({
    summary: 'Enable a sink that was disabled; it resumes after its position.',
    services: 'TSPC',
    extension: true,
    request: { sink_id: Id },
    response: {},
  }),
  DisableSink: operation({
    summary: 'Disable a sink; its events are held back until it is enabled.',
    services: 'TSPC',
    extension: true,
    request: { sink_id: Id },
    response: {},
  }),
  RemoveSink: operation({
    summary: 'Remove a sink; events that were not published are dropped.',
    description: 'One that is not there, or no longer, is no error.',
    services: 'TSPC',
    extension: true,
    request: { sink_id: Id },
    response: {},
  }),
}
