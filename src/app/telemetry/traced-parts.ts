import type { Chain } from '../../chains/chain.ts'
import { inSpan, type SpanFields, type Tracing } from '../../lib/tracing.ts'
import type { RedisConnection } from '../../storage/redis/redis.ts'

type Calls = Record<string, (...args: never[]) => Promise<unknown>>

/** The same object, with some of its asynchronous functions as parts of the current trace. */
function traceCalls<target extends object>(
  target: target,
  names: readonly (keyof target & string)[],
  { tracing, prefix, fields }: { tracing: Tracing; prefix: string; fields: SpanFields },
): target {
  const wrapped = Object.fromEntries(
    names
      .filter((name) => target[name] !== undefined)
      .map((name) => {
        const call = (target as unknown as Calls)[name]!
        const span = `${prefix} ${name}`
        const traced: Calls[string] = (...args) => {
          const open = tracing.open(span, fields)
          // Outside of a trace, which is most of the time, nothing is added.
          return open ? inSpan(open, () => call(...args)) : call(...args)
        }
        return [name, traced]
      }),
  )
  return { ...target, ...wrapped }
}

/**
 * A chain whose questions to nodes are parts of the current trace. On EVM chains the calls of the pool are below them;
 * the other families ask one or several nodes for each.
 */
export function traceChain(chain: Chain, tracing: Tracing, network: string): Chain {
  const options = { tracing, prefix: 'chain', fields: { network } }
  const made = traceCalls(chain, ['identity', 'head', 'header', 'block', 'readBalances'], options)
  const { tokens, sending } = chain
  return {
    ...made,
    ...(tokens && {
      tokens: traceCalls(
        tokens,
        ['verifyContract', 'readTokenUris', 'verifyToken', 'findAccounts', 'resolveImport'],
        options,
      ),
    }),
    ...(sending && {
      sending: traceCalls(
        sending,
        ['transactionCount', 'gasPrice', 'balance', 'blockLimits', 'estimate', 'broadcast'],
        options,
      ),
    }),
  }
}

/** A connection to Redis whose scripts and commands are parts of the current trace. */
export function traceRedis(redis: RedisConnection, tracing: Tracing): RedisConnection {
  return {
    ...redis,
    script: (lua, keyCount) => {
      const run = redis.script(lua, keyCount)
      return (keys, args) => {
        const span = tracing.open('redis script', { keys: keys.length })
        return span ? inSpan(span, () => run(keys, args)) : run(keys, args)
      }
    },
    command: (name, ...args) =>
      inSpan(tracing.open(`redis ${name}`), () => redis.command(name, ...args)),
  }
}
