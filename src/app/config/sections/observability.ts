// What operators see of the service: log, traces and the audit log.

import Type from 'typebox'
import { headerRecord, secretUrl } from '../keys.ts'

/** The audit log. */
export const auditSection = Type.Object(
  {
    retention_days: Type.Integer({
      description:
        'How long events of the audit log are kept. The chain verifies from a signed anchor when older ones were removed.',
      default: 400,
      minimum: 1,
      maximum: 36_500,
    }),
  },
  { description: 'The audit log.' },
)

/** Level and format of the log, and the requests that it shows. */
export const loggingSection = Type.Object(
  {
    level: Type.Enum(['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'], {
      description: 'Least severe message that is written.',
      default: 'info',
    }),
    format: Type.Enum(['auto', 'json', 'pretty'], {
      description: '`json` for machines, `pretty` for people, `auto` is pretty on a terminal only.',
      default: 'auto',
    }),
    // Operations are few and each is worth a line; calls of the gateway are many, so their default is a sample.
    operation_share: Type.Optional(
      Type.Number({
        description:
          'Share of operations that get a line in the log, from 0 for none to 1 for all: organization, credential, operation, status, reason, duration, bytes and request id. At the levels `debug` and `trace` all do.',
        unset: '1; 0 while `security.development_rules` hold',
        example: 1,
        minimum: 0,
        maximum: 1,
      }),
    ),
    gateway_share: Type.Number({
      description: 'The same for calls of the gateway. 0 costs nothing; 1 costs a line per call.',
      default: 0.01,
      minimum: 0,
      maximum: 1,
    }),
  },
  { description: 'Level and format of the log, and the requests that it shows.' },
)

/** Traces and logs for a collector of OpenTelemetry. */
export const telemetrySection = Type.Object(
  {
    otlp_url: Type.Optional(
      secretUrl(['http', 'https'], {
        description:
          'Base address of a collector that takes OTLP over HTTP; `/v1/traces` and `/v1/logs` are added to it.',
        unset: 'nothing is traced or sent, and the SDK is not loaded',
        example: 'http://127.0.0.1:4318',
        mask: 'password',
      }),
    ),
    headers: headerRecord({
      description: 'Headers of every request to the collector, such as its access token.',
      example: { authorization: 'env:OTLP_AUTHORIZATION' },
    }),
    service_name: Type.String({
      description:
        'Name of this installation in traces. Installations that share a collector need different names.',
      default: 'portolan',
      minLength: 1,
      maxLength: 100,
      pattern: '^[\\x21-\\x7e]+$',
      expects: 'at most 100 visible ASCII characters',
    }),
    // Measured: tracing every operation costs 25 % of CPU time, a share of 0.01 costs 5 % (bench/RESULTS.md).
    trace_share: Type.Number({
      description: 'Share of requests and of blocks that are traced, from 0 to 1.',
      default: 0.01,
      minimum: 0,
      maximum: 1,
    }),
    logs: Type.Boolean({
      description: 'Whether lines of the log are sent to the collector too.',
      default: false,
    }),
  },
  { description: 'Traces and logs for a collector of OpenTelemetry; optional.' },
)
