import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../../app/config/schema.ts'
import { resolveSecret } from '../../app/config/secrets.ts'
import type { Shell } from '../shell.ts'
import { type Finding, ok, warning } from './finding.ts'
import type { Patient } from './run.ts'

const patienceMs = 5_000

type Network = {
  upstreams: readonly { url: string; name?: string; headers: Record<string, string> }[]
}
type Upstream = { name: string; url: string; headers: Record<string, string> }

/** Whether each node of each chain answers, all at once. The service starts without them. */
export async function* checkUpstreams({ config, shell }: Patient): AsyncGenerator<Finding> {
  yield* await Promise.all(upstreamsOf(config, shell.env).map(checkUpstream))
}

function upstreamsOf({ chains }: Config, env: Shell['env']): Upstream[] {
  return Object.entries(chains).flatMap(([tag, chain]) =>
    Object.entries<Network>(chain.networks).flatMap(([network, { upstreams }]) =>
      upstreams.map((upstream) => {
        const key = `chains.${tag}.networks.${network}.upstreams`
        const url = resolveSecret(upstream.url, { env, key })
        const headers = Object.fromEntries(
          Object.entries(upstream.headers).map(([name, value]) => [
            name,
            resolveSecret(value, { env, key }),
          ]),
        )
        // Only the host: the rest of the address may hold an access key.
        return { name: `${tag} ${network} ${upstream.name ?? new URL(url).host}`, url, headers }
      }),
    ),
  )
}

async function checkUpstream(upstream: Upstream): Promise<Finding> {
  const begun = performance.now()
  const took = () => `${upstream.name} answers in ${Math.round(performance.now() - begun)} ms`
  const fix = 'Check the url, the node and the network in between.'
  try {
    const status = await (/^http/.test(upstream.url) ? askHttp(upstream) : knock(upstream))
    if (status === 401 || status === 403)
      return warning(
        'nodes',
        `${upstream.name} refuses the credentials (HTTP ${status}).`,
        'Check the access key in the url or the headers.',
      )
    return ok('nodes', took())
  } catch (error) {
    return warning('nodes', `${upstream.name} does not answer: ${reasonOf(error)}.`, fix)
  }
}

async function askHttp({ url, headers }: Upstream): Promise<number> {
  const signal = AbortSignal.timeout(patienceMs)
  const answer = await fetch(url, { headers, signal, redirect: 'manual' })
  await answer.body?.cancel()
  return answer.status
}

async function knock({ url }: Upstream): Promise<undefined> {
  const { protocol, hostname, port } = new URL(url)
  const secure = protocol === 'wss:'
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = secure
    ? connectTls({ host, port: Number(port || 443), servername: host })
    : connectTcp({ host, port: Number(port || 80) })
  try {
    const signal = AbortSignal.timeout(patienceMs)
    await once(socket, secure ? 'secureConnect' : 'connect', { signal })
  } finally {
    socket.destroy()
  }
}

function reasonOf(error: unknown): string {
  const { name, message, code, cause } = error as Error & { code?: string }
  if (name === 'TimeoutError' || name === 'AbortError') return `nothing within ${patienceMs} ms`
  return cause instanceof Error ? reasonOf(cause) : message || String(code)
}
