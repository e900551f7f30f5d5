import type { saslMechanisms } from '../../contract/records/states.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { bareHost, checkEndpoint, type EndpointRules } from '../../lib/net/endpoint.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import { secretContext } from '../webhooks/secret.ts'

/** Where a sink publishes, as it is stored. */
export type SinkSettings = {
  servers: string[]
  tls: boolean
  /** NATS. */
  subject_prefix?: string
  /** Kafka. */
  topic?: string
}

/** How a sink authenticates; stored sealed. */
export type SinkCredentials = {
  username?: string | undefined
  password?: string | undefined
  token?: string | undefined
  sasl_mechanism?: (typeof saslMechanisms)[number] | undefined
}

/** Seals the credentials of a sink in the place of the signing secret of a webhook. */
export const sealCredentials = (
  sealer: Pick<Sealer, 'seal'>,
  sink_id: string,
  { username, password, token, sasl_mechanism }: SinkCredentials,
): Buffer =>
  sealer.seal(JSON.stringify({ username, password, token, sasl_mechanism }), secretContext(sink_id))

/** Opens the credentials of a sink. */
export const openCredentials = (
  sealer: Pick<Sealer, 'open'>,
  sink_id: string,
  sealed: Buffer,
): SinkCredentials =>
  JSON.parse(sealer.open(sealed, secretContext(sink_id)).toString('utf8')) as SinkCredentials

/** A server of a broker. */
export type SinkServer = { host: string; port: number }

const serverPattern = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@[\]]+):([1-9]\d{0,4})$/

/** Reads a stored server; it was checked when it was stored. */
export function readServer(text: string): SinkServer {
  const [, host = '', port = ''] = serverPattern.exec(text) ?? []
  return { host: bareHost(host), port: Number(port) }
}

/** Checks the servers of a request under the rules of webhooks, and gives them as they are stored. */
export function checkServers(
  servers: readonly string[],
  { tls, rules }: { tls: boolean; rules: EndpointRules },
): string[] {
  // All problems of the list at once, as for every bad request.
  const violations: { field: string; reason: string; detail: string }[] = []
  if (!tls && !rules.allowHttp)
    violations.push({
      field: 'tls',
      reason: 'INVALID_ENDPOINT',
      detail: 'Must be true: this installation allows encrypted connections only.',
    })
  const checked = servers.map((text, index) => {
    const [, , port = ''] = serverPattern.exec(text) ?? []
    const { url, problem } =
      port === '' || Number(port) > 65_535
        ? { url: undefined, problem: 'Not a host and port: `nats.example.org:4222`.' }
        : checkEndpoint(`https://${text}`, rules)
    if (url) return `${url.hostname}:${port}`
    violations.push({
      field: `servers[${index}]`,
      reason: 'INVALID_ENDPOINT',
      detail: problem ?? '',
    })
    return ''
  })
  if (violations.length > 0) throw invalidRequest(violations)
  return checked
}
