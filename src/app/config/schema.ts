// The whole configuration as one schema, and the rules between keys that no single key can check.

import Type from 'typebox'
import type { Finding, Source } from './problem.ts'
import {
  type ChainsSettings,
  chainsRules,
  chainsSection,
  type VariantsByName,
} from './sections/chains.ts'
import { databaseSection } from './sections/database.ts'
import { gatewayRules, gatewaySection } from './sections/gateway.ts'
import { limitsSection, quotasSection } from './sections/limits.ts'
import { auditSection, loggingSection, telemetrySection } from './sections/observability.ts'
import { redisSection } from './sections/redis.ts'
import { securitySection } from './sections/security.ts'
import { serverRules, serverSection } from './sections/server.ts'
import { balancesSection, metadataSection, transactionsSection } from './sections/tracking.ts'
import { webhooksRules, webhooksSection } from './sections/webhooks.ts'

/** The sections beside the chains. A new one is a constant in the file of its group and one line here. */
const sections = {
  data_dir: Type.Optional(
    Type.String({
      description:
        'Folder for all that the service keeps outside of a database server. A relative path starts at the file that names it, else at the working directory.',
      unset:
        '`.data` in the working directory, or `/var/lib/portolan` when root runs the service and its database could not reach that folder',
      example: '/var/lib/portolan',
      minLength: 1,
      path: true,
    }),
  ),
  server: serverSection,
  database: databaseSection,
  redis: redisSection,
  security: securitySection,
  limits: limitsSection,
  quotas: quotasSection,
  gateway: gatewaySection,
  webhooks: webhooksSection,
  transactions: transactionsSection,
  balances: balancesSection,
  audit: auditSection,
  logging: loggingSection,
  telemetry: telemetrySection,
  metadata: metadataSection,
}

const generalSchema = Type.Object(sections)

/** The whole configuration, for a file that names these chains. */
export const configSchemaOf = (named?: VariantsByName) =>
  Type.Object({ ...sections, chains: chainsSection(named) })

/** The values of every key, defaults filled in. */
export type Settings = Type.Static<typeof generalSchema> & { chains: ChainsSettings }

/** A loaded configuration, and where its values came from. */
export type Config = Settings & { readonly source: Source }

/** Settings as a caller may give them: any part. What is said of chains is checked like a file. */
export type Overrides = DeepPartial<Omit<Settings, 'chains'>> & {
  chains?: { readonly [name: string]: object | undefined } | undefined
}

type DeepPartial<value> = value extends readonly unknown[]
  ? value
  : value extends object
    ? { [key in keyof value]?: DeepPartial<value[key]> | undefined }
    : value

/** Rules between keys, which no single key can check. */
export const checkRules = (settings: Settings): Finding[] => [
  ...serverRules(settings.server),
  ...gatewayRules(settings.gateway),
  ...webhooksRules(settings.webhooks),
  ...chainsRules(settings.chains),
]
