import Type from 'typebox'
import { secretText, secretUrl } from '../keys.ts'

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
    headers: Type.Record(
      Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }),
      secretText({
        description: 'Value of that header.',
        pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
        expects: 'a header value, or a `file:` or `env:` reference',
      }),
      {
        description: 'Headers of every request to the collector, such as its access token.',
        default: {},
        example: { authorization: 'env:OTLP_AUTHORIZATION' },
        entry: 'header',
      },
    ),
    service_name: Type.String({
      description:
        'Name of this installation in traces. Installations that share a collector need different names.',
      default: 'portolan',
      minLength: 1,
      maxLength: 100,
      pattern: '^[\\x21-\\x7e]+$',
      expects: 'at most 100 visible ASCII characters',
    }),
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
