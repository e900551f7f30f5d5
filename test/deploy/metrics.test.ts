import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import type { Overrides } from '../../src/app/config/schema.ts'
import { catalogue } from '../../src/contract/operations/catalogue.ts'
import { outcomes } from '../../src/gateway/usage/counters.ts'
import { startTestApp } from '../helpers/app.ts'
import { alerts, dashboards, expressions, readExpression, root } from './expressions.ts'
import { needTool, runTool } from './tools.ts'

// Alerts and dashboards are compared with what a service exports that tracks a chain and was called.

const anvil = await startAnvil({ chainId: 7023 })
afterAll(() => anvil.kill())
const config = {
  chains: {
    c: { variants: ['C', 'Q'], networks: { mainnet: { upstreams: [{ url: anvil.url }] } } },
  },
} as unknown as Overrides
const service = await startTestApp({ config })
const { member } = await service.createTenant()

/** Labels that Prometheus adds to what it reads. */
const added = ['instance', 'job']
type Exported = { type: string; labels: Map<string, Set<string>> }

/** What is exported now, by the names of the samples. */
const exported = async (): Promise<Map<string, Exported>> => {
  const { text } = await service.admin('/metrics')
  const types = new Map<string, string>()
  // Made by Prometheus for each target.
  const found = new Map<string, Exported>([['up', { type: 'gauge', labels: new Map() }]])
  for (const line of text.split('\n')) {
    const [, family, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (family !== undefined) types.set(family, type!)
    const [, name, labels = ''] = /^([a-z_]\w*)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const kind = types.get(name) ?? types.get(name.replace(/_(?:bucket|sum|count)$/, '')) ?? ''
    const metric = found.get(name) ?? { type: kind, labels: new Map<string, Set<string>>() }
    found.set(name, metric)
    for (const [, label, value] of labels.matchAll(/(\w+)="([^"]*)"/g))
      metric.labels.set(label!, (metric.labels.get(label!) ?? new Set()).add(value!))
  }
  return found
}

const rpc = (key: string, method: string, params: unknown[] = []) =>
  service.send(`/c/mainnet/v1/${key}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })

beforeAll(async () => {
  await service.call(member, 'c/ListWallets', {})
  await rpc(member.api_key, 'eth_getBlockByNumber', ['0x0', false])
  await rpc('plk_AAAAAAAAAAAAAAAAAAAAAAAA', 'eth_blockNumber')
  await service.reload(config)
})

describe('alerts and dashboards', () => {
  it('use metrics that the service exports', async () => {
    const used = new Set(
      expressions.flatMap(({ text }) => readExpression(text).selectors.map((one) => one.metric)),
    )
    expect(used.size).toBeGreaterThan(40)
    // Some appear only when the nodes were probed and the first block is stored.
    await expect
      .poll(async () => {
        const now = await exported()
        return [...used].filter((name) => !now.has(name))
      })
      .toEqual([])
  })

  it('use labels that these metrics have', async () => {
    const now = await exported()
    const wrong = expressions.flatMap(({ place, text }) => {
      const { selectors, grouped } = readExpression(text)
      const labelsOf = (metric: string) => [...(now.get(metric)?.labels.keys() ?? []), ...added]
      const all = new Set(selectors.flatMap(({ metric }) => labelsOf(metric)))
      return [
        ...grouped.filter((label) => !all.has(label)),
        ...selectors.flatMap(({ metric, matchers }) =>
          matchers
            .filter(({ label }) => !labelsOf(metric).includes(label))
            .map(({ label }) => `${metric}.${label}`),
        ),
      ].map((label) => `${place}: ${label}`)
    })
    expect(wrong).toEqual([])
  })

  it('use values of labels that exist', async () => {
    const now = await exported()
    const operations = new Set(catalogue.map(({ name }) => name))
    const known = (metric: string, label: string): ReadonlySet<string> | undefined => {
      if (label === 'operation') return operations
      if (metric === 'portolan_gateway_calls_total' && label === 'outcome') return new Set(outcomes)
      // Their series exist from the start, or from the first call.
      if (['state', 'result', 'route'].includes(label) || /^portolan_webhook_/.test(metric))
        return now.get(metric)?.labels.get(label)
      return undefined
    }
    const wrong = expressions.flatMap(({ place, text }) =>
      readExpression(text).selectors.flatMap(({ metric, matchers }) =>
        matchers.flatMap(({ label, values }) => {
          const set = known(metric, label)
          return values
            .filter((value) => set && !set.has(value))
            .map((value) => `${place}: ${metric}.${label} = ${value}`)
        }),
      ),
    )
    expect(wrong).toEqual([])
  })

  it('take rates of counters only', async () => {
    const now = await exported()
    const wrong = expressions.flatMap(({ place, text }) =>
      readExpression(text)
        .rising.filter((name) => !['counter', 'histogram'].includes(now.get(name)?.type ?? ''))
        .map((name) => `${place}: ${name}`),
    )
    expect(wrong).toEqual([])
  })
})

describe('dashboards', () => {
  it('are the six, with panels that do not overlap', () => {
    expect([...dashboards.keys()].sort()).toEqual([
      'database.json',
      'gateway.json',
      'overview.json',
      'tracking.json',
      'transactions.json',
      'webhooks.json',
    ])
    for (const [name, { panels }] of dashboards)
      for (const { gridPos: a, id } of panels)
        for (const { gridPos: b, id: other } of panels)
          if (id < other) {
            const isApart =
              a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y
            expect([name, id, other, isApart]).toEqual([name, id, other, true])
          }
  })

  it('have variables and legends of labels that exist', async () => {
    const now = await exported()
    for (const [name, { templating, panels }] of dashboards) {
      for (const { query } of templating.list.filter(({ type }) => type === 'query')) {
        const text = typeof query === 'string' ? query : query.query
        const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(text)!
        expect([name, text, now.get(metric!)?.labels.has(label!)]).toEqual([name, text, true])
      }
      for (const { targets } of panels)
        for (const { expr, legendFormat } of targets) {
          const labels = readExpression(expr).selectors.flatMap(({ metric }) => [
            ...now.get(metric)!.labels.keys(),
          ])
          for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
            expect([...labels, ...added], `${name}: ${legendFormat}`).toContain(label)
        }
    }
  })
})

describe('promtool', () => {
  it('accepts the configuration and the alerts', (context) => {
    needTool(context, 'promtool', '--version')
    const { status, text } = runTool('promtool', [
      ...['check', 'config', join(root, 'deploy/prometheus/prometheus.yaml')],
    ])
    expect(text).toContain(`${alerts.length} rules found`)
    expect([status, text]).toEqual([0, text])
  })

  it('accepts the expressions of the dashboards', (context) => {
    needTool(context, 'promtool', '--version')
    const folder = mkdtempSync(join(tmpdir(), 'portolan-rules-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const rules = expressions.map(({ text }, index) => ({
      record: `expression:${index}`,
      expr: text.replaceAll('$chain', '.*'),
    }))
    const file = join(folder, 'rules.yaml')
    writeFileSync(file, stringify({ groups: [{ name: 'dashboards', rules }] }))
    const { status, text } = runTool('promtool', ['check', 'rules', file])
    expect([status, text]).toEqual([0, text])
  })

  it('finds nothing wrong with the metrics of the service', async (context) => {
    needTool(context, 'promtool', '--version')
    const { text } = await service.admin('/metrics')
    const checked = runTool('promtool', ['check', 'metrics'], text)
    expect([checked.status, checked.text]).toEqual([0, ''])
  })
})
