import Type from 'typebox'
import { secretUrl } from '../keys.ts'

/** Redis or Valkey, which several gateways share. */
export const redisSection = Type.Object(
  {
    url: Type.Optional(
      secretUrl(['redis', 'rediss'], {
        description:
          'Redis 7 or Valkey, for rate limits that several processes share and for changes of keys.',
        unset: 'one process counts in memory, several agree through the database',
        example: 'redis://redis.example.org:6379/0',
        mask: 'password',
      }),
    ),
    key_prefix: Type.String({
      description: 'Start of every key, so that installations can share one Redis.',
      default: 'portolan:',
      maxLength: 100,
      pattern: '^[\\x21-\\x7e]*$',
      expects: 'at most 100 visible ASCII characters',
    }),
    when_unreachable: Type.Enum(['share', 'refuse'], {
      description:
        'What a process that has lost Redis does with calls that a rate limit applies to: `share` admits its part of the limit (`limits.replicas`), `refuse` answers 429, also for a second after Redis has lost its data, so that no limit is ever exceeded.',
      default: 'share',
    }),
  },
  { description: 'Redis or Valkey; optional, for several processes.' },
)
