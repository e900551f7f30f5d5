import type { Config } from './schema.ts'

/** Whether everything is embedded: no configuration file and no database of the operator's. Only then demo credentials are made. */
export const isEmbedded = (config: Config): boolean =>
  config.source.file === undefined && config.database.url === undefined
