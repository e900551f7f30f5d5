import Type from 'typebox'

const window = (name: string, value: number) =>
  Type.Integer({
    description: `Calls per ${name}; -1 means unlimited, 0 means blocked.`,
    default: value,
    minimum: -1,
    maximum: Number.MAX_SAFE_INTEGER,
  })

/** Default rate limits of an organization on a chain. */
export const limitsSection = Type.Object(
  {
    per_second_limit: window('second', 100),
    per_hour_limit: window('hour', 100_000),
    per_day_limit: window('day', 1_000_000),
    per_month_limit: window('month', 20_000_000),
    replicas: Type.Integer({
      description:
        'Number of processes that serve requests. Without Redis each admits its share of a limit.',
      default: 1,
      minimum: 1,
      maximum: 10_000,
    }),
  },
  {
    description: 'Default rate limits of an organization on a chain.',
  },
)
