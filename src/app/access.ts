// Wires authentication and limits. Both exist once per process: their caches and budgets must see every caller.

import { type Admission, createAdmission } from '../domain/access/admit.ts'
import { type Authenticator, createAuthenticator } from '../domain/access/authenticate.ts'
import { checkMasterKey } from '../domain/access/credential-keys.ts'
import { createFailureBudget, type Failure } from '../domain/access/failure-budget.ts'
import { createGatewayKeys, type GatewayKeys } from '../domain/access/gateway-keys.ts'
import { createKeyForms, loadKeyMac } from '../domain/access/key-mac.ts'
import { createLimitRecords, type LimitRecords } from '../domain/access/limit-records.ts'
import { createNonceSpender } from '../domain/access/nonce-spender.ts'
import type { Installation } from '../domain/context.ts'
import { createLimiter, type Limiter } from '../domain/limits/limiter.ts'
import { createLimitScript } from '../domain/limits/shared-windows.ts'
import { createUsageStore } from '../domain/limits/stored-usage.ts'
import type { Tracing } from '../lib/tracing.ts'
import {
  type AccessChange,
  createChangePublisher,
  listenOnRedis,
} from '../storage/redis/changes.ts'
import { connectRedis } from '../storage/redis/redis.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'
import type { ServiceDatabase } from './database.ts'
import type { Own, Stoppable } from './lifetime.ts'
import { traceRedis } from './telemetry/traced-parts.ts'

/** Authentication and limits: which callers are admitted, and how often. */
export type Access = {
  authenticator: Authenticator
  keys: GatewayKeys
  records: LimitRecords
  limiter: Limiter
  admission: Admission
  /** The second way of changes to and from other processes; absent without Redis. */
  changes?: {
    publish: NonNullable<Installation['publishChange']>
    listen(onChange: (change: AccessChange) => void): Promise<Stoppable>
  }
}

/** Opens authentication, gateway keys and rate limits. */
export async function openAccess(
  config: Config,
  installation: Installation,
  tools: Pick<ServiceDatabase, 'pool' | 'nonceMemory'> & {
    env: Env
    /** Whether this process answers clients; limits are not shared where it does not. */
    isServing: boolean
    /** The limiter that this process shares with others of the service. */
    limiter?: Limiter | undefined
    onFailure(failure: Failure): void
    tracing?: Tracing | undefined
  },
  own: Own,
): Promise<Access> {
  const { db, clock, log } = installation
  const { env, pool, nonceMemory, isServing, onFailure, tracing } = tools
  const { security, limits, redis: redisSettings } = config
  // Checked at the start: the first signed request would fail otherwise.
  await checkMasterKey(installation)
  const forms = createKeyForms({ db, clock, log, mac: await loadKeyMac(installation) })
  await forms.refresh()

  const { url, key_prefix, when_unreachable } = redisSettings
  // A process that serves no requests takes from no limit and accepts no key, so it needs no connection to Redis.
  const redisOptions =
    url === undefined || !isServing
      ? undefined
      : { url: resolveSecret(url, { env, key: 'redis.url' }), key_prefix, log }
  const redis = redisOptions && own(await connectRedis(redisOptions))
  const { replicas, ...defaults } = limits
  // Stopping the limiter writes what it has counted, so it is owned here also when it was given.
  const limiter = own(
    tools.limiter ??
      createLimiter({
        clock,
        log,
        store: createUsageStore(db),
        replicas,
        isStrict: when_unreachable === 'refuse',
        ...(redis && {
          redis: createLimitScript(tracing ? traceRedis(redis, tracing) : redis),
        }),
      }),
  )
  const records = createLimitRecords({ db, clock }, { defaults })
  // Shared by signed requests and gateway keys: a client that guesses both has one budget.
  const failures = createFailureBudget({
    clock,
    log,
    onFailure,
    burst: security.auth_failures_burst,
    perSecond: security.auth_failures_per_second,
    delayMs: security.auth_failures_delay_ms,
  })
  const keys = createGatewayKeys({ db, clock, failures }, { forms })
  const authenticator = createAuthenticator(installation, {
    nonceWindowMs: security.nonce_window_seconds * 1000,
    nonces: createNonceSpender({ db, pool }, { memory: nonceMemory }),
    failures,
    forms,
  })
  const admission = createAdmission(records, limiter, { replicas })
  return {
    ...{ authenticator, keys, records, limiter, admission },
    ...(redis && {
      changes: {
        publish: createChangePublisher(redis, redisOptions),
        listen: (onChange) => listenOnRedis({ ...redisOptions, onChange }),
      },
    }),
  }
}
