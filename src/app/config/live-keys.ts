/** The keys beside `chains` that apply without a restart; the name of a section stands for all its keys. */
export const liveKeys: readonly string[] = [
  'logging.level',
  'logging.operation_share',
  'logging.gateway_share',
  'limits.per_second_limit',
  'limits.per_hour_limit',
  'limits.per_day_limit',
  'limits.per_month_limit',
  'server.cors_origins',
  'webhooks',
]
