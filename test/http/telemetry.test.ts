import { describe, expect, it } from 'vitest'
import type { Overrides } from '../../src/app/config/schema.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { startTestApp } from '../helpers/app.ts'
import { startOtlpReceiver } from '../helpers/otlp-receiver.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startReceiver } from '../webhooks/receiver.ts'

const collector = await startOtlpReceiver()
const node = await startStubNode()
const chains = createScriptedChains()
const service = await startTestApp({
  chains,
  config: {
    chains: {
      q: { networks: { mainnet: { upstreams: [{ url: node.url }] } } },
    } as unknown as Overrides['chains'],
    security: { development_rules: true },
    logging: { operation_share: 1 },
    telemetry: {
      ...{ otlp_url: collector.url, trace_share: 1, logs: true },
      headers: { authorization: 'Bearer collector-token' },
    },
  },
})
const { member, organization_id } = await service.createTenant()

const spansOf = (trace_id: string) => collector.spans.filter(({ traceId }) => traceId === trace_id)
const namesOf = (trace_id: string) => spansOf(trace_id).map(({ name }) => name)
/** The names from a span up to the root of its trace. */
const pathOf = (trace_id: string, name: string): string[] => {
  const path: string[] = []
  let span = spansOf(trace_id).find((one) => one.name === name)
  while (span) {
    path.push(span.name)
    const parent = span.parentSpanId
    span = spansOf(trace_id).find(({ spanId }) => spanId === parent)
  }
  return path
}
/** The trace that the access log names for a request. */
const traceOf = async (request_id: string): Promise<string> => {
  const find = () =>
    service.log.lines().find((line) => line.request_id === request_id)?.trace_id as string
  await waitFor('the line of the request', () => find() !== undefined)
  return find()
}

describe('a request', () => {
  it('is one trace through SQL, the cache and a node', async () => {
    // Warm: the first call connects the nodes of the network.
    await service.call(member, 'q/GetBlock', { block_number: 1 })
    // A key that is not in memory yet.
    const pair = await service.createPair(organization_id, 'ROLE_MEMBER')
    const answer = await service.call(pair, 'q/GetBlock', { block_number: 2 })
    const trace_id = await traceOf(String(answer.headers['x-request-id']))
    await waitFor('its spans', () => namesOf(trace_id).includes('q/GetBlock'))
    const names = namesOf(trace_id)
    expect(names).toContain('sql select')
    expect(names).toContainEqual(expect.stringMatching(/^node eth_/))
    const call = names.find((name) => name.startsWith('node '))!
    const read = `gateway ${call.slice(5)}`
    expect(pathOf(trace_id, call)).toEqual([call, read, 'q/GetBlock'])
    expect(spansOf(trace_id).find(({ name }) => name === read)?.fields).toMatchObject({
      cache: expect.stringMatching(/^(?:miss|none)$/),
    })
  })

  it('has the questions to a chain that is not EVM', async () => {
    const { json: wallet } = await service.call(member, 's/RegisterWallet', { name: 'w' })
    const answer = await service.call(member, 's/ImportAsset', {
      ...{ wallet_id: wallet.wallet_id, asset_type: 'ASSET_TYPE_S' },
      token_address: `0x${'12'.repeat(32)}::coin::COIN`,
    })
    const trace_id = await traceOf(String(answer.headers['x-request-id']))
    await waitFor('its spans', () => namesOf(trace_id).includes('s/ImportAsset'))
    expect(namesOf(trace_id)).toContain('chain verifyToken')
  })

  it('has the trace in its problem body, its log lines and the lines that are sent', async () => {
    const { json } = await service.call(member, 'c/GetWallet', { wallet_id: 'none' })
    expect(json.trace_id).toMatch(/^[0-9a-f]{32}$/)
    expect(await traceOf(json.request_id)).toBe(json.trace_id)
    const sent = () => collector.lines.find(({ fields }) => fields.request_id === json.request_id)
    await waitFor('the line is sent', () => sent() !== undefined)
    expect(sent()).toMatchObject({
      ...{ traceId: json.trace_id, severityText: 'info' },
      ...{ body: { stringValue: 'request finished' }, fields: { reason: json.reason } },
    })
    expect(collector.headers().authorization).toBe('Bearer collector-token')
  })

  it('continues the trace of its caller', async () => {
    const trace_id = '0af7651916cd43dd8448eb211c80319c'
    const traceparent = `00-${trace_id}-b7ad6b7169203331-01`
    for (const more of [{}, { te: 'trailers' }]) {
      const headers = { traceparent, ...more }
      const { json } = await service.call(member, 'c/GetWallet', { wallet_id: 'none' }, headers)
      expect(json.trace_id).toBe(trace_id)
    }
    const bad = { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` }
    const { json } = await service.call(member, 'c/GetWallet', { wallet_id: 'none' }, bad)
    expect(json.trace_id).toMatch(/[1-9a-f]/)
  })

  it('of the gateway shows whether the cache had the answer', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
    const headers = { 'content-type': 'application/json' }
    const spans = () =>
      collector.spans
        .filter(({ name }) => name === 'gateway eth_chainId')
        .map(({ fields }) => fields)
    for (const wanted of [1, 2]) {
      await service.send(`/q/mainnet/v1/${member.api_key}`, { headers, body })
      await waitFor('the span', () => spans().length >= wanted)
    }
    expect(spans().at(-1)).toMatchObject({ cache: 'hit' })
    expect((await service.admin('/metrics')).text).not.toContain('trace_id')
  })
})

it('a block is one trace from matching to each POST', async () => {
  const receiver = await startReceiver()
  const { json: wallet } = await service.call(member, 'c/RegisterWallet', { name: 'w' })
  const address = `0x${'ab'.repeat(20)}`
  await service.call(member, 'c/RegisterAddress', { wallet_id: wallet.wallet_id, address })
  await service.call(member, 'c/RegisterWebhook', {
    ...{ webhook_endpoint: receiver.url, confirmation: 1 },
  })
  const parsed = chains.c.parseAddress(address)
  if (!parsed.ok) throw new Error(parsed.detail)
  chains.c.mine([{ movements: [{ to: parsed.bytes, value: 5n }] }])
  await waitFor('the delivery', () => receiver.received.length > 0)
  const [, trace_id = '', span_id] = String(receiver.received[0]!.headers.traceparent).split('-')
  await waitFor('its spans', () => namesOf(trace_id).includes('deliver'))
  await waitFor('its block', () => namesOf(trace_id).includes('block'))
  expect(spansOf(trace_id).find(({ name }) => name === 'deliver')?.spanId).toBe(span_id)
  expect(pathOf(trace_id, 'deliver')).toEqual(['deliver', 'block'])
  expect(pathOf(trace_id, 'match')).toEqual(['match', 'commit', 'block'])
  expect(pathOf(trace_id, 'notify')).toEqual(['notify', 'commit', 'block'])
})

it('exemplars name traces in OpenMetrics', async () => {
  const answer = await fetch(`${service.app.admin_url}/metrics`, {
    headers: { accept: 'application/openmetrics-text; version=1.0.0' },
  })
  const text = await answer.text()
  for (const name of [
    'portolan_http_request_seconds_bucket',
    'portolan_gateway_call_seconds_bucket',
    'portolan_webhook_attempt_seconds_bucket',
    'portolan_block_to_list_seconds_bucket',
  ])
    expect(text).toMatch(new RegExp(`^${name}\\{.*\\} \\d+ # \\{trace_id="[0-9a-f]{32}"\\} `, 'm'))
})
