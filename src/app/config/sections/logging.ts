import Type from 'typebox'

/** Level and format of the log. */
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
  },
  { description: 'Level and format of the log.' },
)
