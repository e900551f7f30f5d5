/** The keys beside `chains` that apply without a restart; the name of a section stands for all its keys. */
export const liveKeys: readonly string[] = [
  'logging.level',
  'limits.per_second_limit',
  'limits.per_hour_limit',
  'limits.per_day_limit',
  'limits.per_month_limit',
  'server.cors_origins',
  'webhooks',
]
