import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { alerts, root } from './expressions.ts'
import { needTool, runTool } from './tools.ts'

// Every alert is evaluated by promtool on series that the fault causes, and on series of a healthy service.

/** Samples of one series, a minute apart: `a+bxn` begins at a and adds b n times. */
type Series = Record<string, string>

const on = 'chain="c",network="mainnet"'
const rises = '0+60x60'
const still = (value: number) => `${value}+0x60`

/** The series of each fault. */
const faults: Record<string, Series> = {
  PortolanProcessDown: { 'up{job="portolan",instance="a"}': still(0) },
  PortolanOperationsFail: {
    'portolan_http_requests_total{route="operations",status="200"}': rises,
    'portolan_http_requests_total{route="operations",status="503"}': '0+6x60',
  },
  PortolanPoolExhausted: {
    'portolan_database_connections{pool="requests",state="waiting"}': still(3),
  },
  PortolanDiskFull: {
    'portolan_disk_free_bytes{instance="a"}': still(5),
    'portolan_disk_size_bytes{instance="a"}': still(100),
  },
  PortolanRedisUnreachable: { portolan_limiter_shared: '1 1 0+0x58' },
  PortolanReloadRefused: { portolan_config_last_reload_successful: still(0) },
  PortolanWrongCredentials: {
    'portolan_authentication_failures_total{kind="operation",outcome="limited"}': '0+120x60',
  },
  PortolanNodeDown: {
    [`portolan_upstream_up{${on},upstream="a"}`]: still(0),
    [`portolan_upstream_up{${on},upstream="b"}`]: still(1),
  },
  PortolanNodeBehind: { [`portolan_upstream_lag{${on},upstream="a"}`]: still(60) },
  PortolanGatewayFails: {
    [`portolan_gateway_calls_total{${on},outcome="ok"}`]: rises,
    [`portolan_gateway_calls_total{${on},outcome="unavailable"}`]: '0+6x60',
  },
  PortolanTrackerStalled: { [`portolan_tracker_stalled{${on}}`]: still(1) },
  PortolanTrackerFailing: { [`portolan_tracker_failing{${on}}`]: still(1) },
  PortolanTrackerWithoutLeader: { [`portolan_tracker_leading{${on}}`]: still(0) },
  // A block every 12 seconds, of which one in two is stored.
  PortolanTrackerBehind: {
    [`portolan_tracker_head{${on}}`]: '1000+5x60',
    [`portolan_tracker_block{${on}}`]: '950+2x60',
  },
  PortolanGap: { [`portolan_tracker_gap_blocks{${on}}`]: still(4) },
  PortolanReorganizationStorm: {
    [`portolan_tracker_reorganizations_total{${on}}`]: '0+1x60',
  },
  PortolanForgedBlocks: { [`portolan_tracker_forged_blocks_total{${on}}`]: '0x30 1x30' },
  PortolanWebhooksFail: {
    'portolan_webhook_attempts_total{outcome="delivered"}': '0+1x60',
    'portolan_webhook_attempts_total{outcome="failed"}': '0+9x60',
  },
  PortolanWebhooksLate: { portolan_webhook_oldest_due_seconds: '0+60x60' },
  PortolanWebhookDisabled: { [`portolan_webhooks_disabled{${on}}`]: '1x30 2x30' },
  PortolanSendsFail: {
    'portolan_http_requests_total{route="operations",service="c",operation="SendTransaction",status="409"}':
      '0+1x60',
    'portolan_http_requests_total{route="operations",service="c",operation="SendTransaction",status="200"}':
      rises,
  },
  PortolanTransactionsStuck: { [`portolan_transactions_stuck{${on}}`]: still(1) },
  PortolanPendingDropped: { [`portolan_pending_dropped_total{${on}}`]: '0+1x60' },
}

/** Faults that another alert reports too. */
const together: Record<string, { series: Series; alerts: string[] }> = {
  'all nodes are down': {
    series: { [`portolan_upstream_up{${on},upstream="a"}`]: still(0) },
    alerts: ['PortolanNoNode', 'PortolanNodeDown'],
  },
}

const healthy: Series = {
  'up{job="portolan",instance="a"}': still(1),
  'portolan_http_requests_total{route="operations",status="200"}': rises,
  'portolan_database_connections{pool="requests",state="waiting"}': still(0),
  'portolan_database_connections{pool="workers",state="waiting"}': still(2),
  'portolan_disk_free_bytes{instance="a"}': still(50),
  'portolan_disk_size_bytes{instance="a"}': still(100),
  // Without Redis.
  portolan_limiter_shared: still(0),
  portolan_config_last_reload_successful: still(1),
  [`portolan_upstream_up{${on},upstream="a"}`]: still(1),
  [`portolan_upstream_lag{${on},upstream="a"}`]: still(1),
  [`portolan_gateway_calls_total{${on},outcome="ok"}`]: rises,
  [`portolan_tracker_stalled{${on}}`]: still(0),
  [`portolan_tracker_failing{${on}}`]: still(0),
  [`portolan_tracker_leading{${on},instance="a"}`]: still(1),
  [`portolan_tracker_leading{${on},instance="b"}`]: still(0),
  [`portolan_tracker_head{${on}}`]: '1000+5x60',
  [`portolan_tracker_block{${on}}`]: '999+5x60',
  [`portolan_tracker_gap_blocks{${on}}`]: still(0),
  [`portolan_tracker_reorganizations_total{${on}}`]: still(3),
  [`portolan_tracker_forged_blocks_total{${on}}`]: still(0),
  'portolan_webhook_attempts_total{outcome="delivered"}': rises,
  'portolan_webhook_attempts_total{outcome="failed"}': '0+1x60',
  portolan_webhook_oldest_due_seconds: still(5),
  // Disabled long ago.
  [`portolan_webhooks_disabled{${on}}`]: still(2),
  [`portolan_transactions_stuck{${on}}`]: still(0),
  [`portolan_pending_dropped_total{${on}}`]: still(0),
}

const caseOf = (name: string, series: Series, firing: readonly string[]) => ({
  name,
  interval: '1m',
  input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
  promql_expr_test: [
    {
      expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
      eval_time: '50m',
      exp_samples: firing.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    },
  ],
})

it('every alert fires for its fault alone, and none for a healthy service', (context) => {
  needTool(context, 'promtool', '--version')
  const cases = [
    caseOf('healthy', healthy, []),
    ...Object.entries(faults).map(([alert, series]) => caseOf(alert, series, [alert])),
    ...Object.entries(together).map(([name, one]) => caseOf(name, one.series, one.alerts)),
  ]
  const tried = new Set([
    ...Object.keys(faults),
    ...Object.values(together).flatMap((one) => one.alerts),
  ])
  expect(alerts.map(({ alert }) => alert).filter((alert) => !tried.has(alert))).toEqual([])
  const folder = mkdtempSync(join(tmpdir(), 'portolan-alerts-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'cases.yaml')
  const rules = join(root, 'deploy/prometheus/alerts.yaml')
  writeFileSync(file, stringify({ rule_files: [rules], evaluation_interval: '1m', tests: cases }))
  const { status, text } = runTool('promtool', ['test', 'rules', file])
  expect([status, text]).toEqual([0, expect.stringContaining('SUCCESS')])
})
