import Type from 'typebox'

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
