import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from './load.ts'
import { loadText, oneChain, sentencesOf, temporaryFolder } from './testing/fixture.ts'

describe('defaults', () => {
  it('are all there without a file', () => {
    const { source, ...settings } = loadConfig({ env: {}, cwd: '/nowhere' })
    expect(source).toEqual({ origins: {} })
    expect(settings).toMatchInlineSnapshot(`
      {
        "audit": {
          "retention_days": 400,
        },
        "balances": {
          "reconcile_hours": 24,
        },
        "chains": {},
        "database": {
          "embedded": {
            "backup": {
              "archive_timeout_seconds": 60,
            },
            "settings": {},
          },
          "pool_size": 10,
          "replica_urls": [],
          "statement_timeout_seconds": 30,
          "worker_pool_size": 10,
        },
        "gateway": {
          "allowed_methods": [
            "evm_chainId",
            "evm_getBlockReceipts",
            "evm_feeHistory",
            "evm_maxPriorityFeePerGas",
            "evm_blobBaseFee",
            "evm_getProof",
            "evm_createAccessList",
            "evm_simulateV1",
            "web3_sha3",
          ],
          "batch_limit": 1000,
          "batch_response_limit_bytes": 26214400,
          "body_limit_bytes": 5242880,
          "cache_bytes": 67108864,
          "connections_per_key": 1000,
          "filter_terms_per_key": 100000,
          "filter_terms_per_organization": 200000,
          "filters_per_key": 500,
          "logs_max_range": 10000,
          "notifications_limit_bytes": 67108864,
          "sleep_after_minutes": 10,
          "subscriptions_per_key": 2000,
          "timeout_seconds": 30,
        },
        "limits": {
          "per_day_limit": 1000000,
          "per_hour_limit": 100000,
          "per_month_limit": 20000000,
          "per_second_limit": 100,
          "replicas": 1,
        },
        "logging": {
          "format": "auto",
          "gateway_share": 0.01,
          "level": "info",
        },
        "metadata": {},
        "quotas": {
          "addresses": 10000000,
          "contracts": 10000,
          "open_transactions": 100000,
          "wallets": 100000,
          "webhook_headers": 50000,
          "webhooks": 10000,
        },
        "redis": {
          "key_prefix": "portolan:",
          "when_unreachable": "share",
        },
        "security": {
          "auth_failures_burst": 200,
          "auth_failures_delay_ms": 1000,
          "auth_failures_per_second": 5,
          "master_key_refresh_seconds": 30,
          "nonce_window_seconds": 300,
        },
        "server": {
          "base_path": "",
          "body_bytes_limit": 536870912,
          "body_bytes_per_address": 134217728,
          "body_limit_bytes": 1048576,
          "connections_limit": 32768,
          "connections_per_address": 4096,
          "console": true,
          "header_timeout_seconds": 10,
          "host": "127.0.0.1",
          "keep_alive_timeout_seconds": 65,
          "operation_timeout_seconds": 40,
          "port": 4000,
          "request_timeout_seconds": 30,
          "reuse_port": true,
          "roles": [
            "api",
            "gateway",
            "tracker",
            "courier",
            "sender",
            "console",
          ],
          "shutdown_timeout_seconds": 25,
          "streams_per_key": 20,
          "streams_per_organization": 100,
          "trust_proxy": false,
          "workers": "auto",
        },
        "telemetry": {
          "headers": {},
          "logs": false,
          "service_name": "portolan",
          "trace_share": 0.01,
        },
        "transactions": {
          "created_expiry_hours": 72,
        },
        "webhooks": {
          "concurrency": 16,
          "history_retention_days": 90,
          "in_flight_limit": 2000,
          "timeout_seconds": 15,
        },
      }
    `)
  })

  it('fill a chain down to its nodes', () => {
    expect(loadText(oneChain).chains).toMatchInlineSnapshot(`
      {
        "c": {
          "default_network": "mainnet",
          "kind": "evm",
          "networks": {
            "mainnet": {
              "multicall": "0xca11bde05977b3631167028862be2a173976ca11",
              "proof": "root",
              "unproven_types": [],
              "upstreams": [
                {
                  "headers": {},
                  "priority": 0,
                  "url": "https://node.example.org/v3/abc",
                },
              ],
              "verify_senders": true,
            },
          },
          "prefix": "eth",
          "shared": false,
        },
      }
    `)
  })

  it('are copies, so that one configuration never changes another', () => {
    const load = () => loadConfig({ env: {}, cwd: '/' })
    expect(load().database.embedded.settings).not.toBe(load().database.embedded.settings)
  })
})

describe('precedence', () => {
  it('is override, environment, file, default', () => {
    const text = 'server: {port: 1, host: "::1", header_timeout_seconds: 5}'
    const config = loadText(text, {
      env: { PORTOLAN_SERVER__PORT: '2', PORTOLAN_SERVER__HOST: 'localhost' },
      overrides: { server: { port: 3 } },
    })
    expect(config.server).toMatchObject({
      port: 3,
      host: 'localhost',
      header_timeout_seconds: 5,
      request_timeout_seconds: 30,
    })
    expect(config.source.origins).toMatchInlineSnapshot(`
      {
        "server.header_timeout_seconds": {
          "column": 32,
          "file": "portolan.yaml",
          "from": "file",
          "line": 1,
        },
        "server.host": {
          "from": "env",
          "variable": "PORTOLAN_SERVER__HOST",
        },
        "server.port": {
          "from": "override",
        },
      }
    `)
  })

  it('ignores an override that is undefined', () => {
    const overrides = { server: { port: undefined } }
    expect(loadConfig({ env: {}, cwd: '/', overrides }).server.port).toBe(4000)
  })
})

describe('the file', () => {
  it('is the named one, else PORTOLAN_CONFIG, else portolan.yaml', () => {
    using folder = temporaryFolder()
    const cwd = folder.path
    for (const [index, name] of ['portolan.yaml', 'b.yaml', 'c.yaml'].entries())
      writeFileSync(join(cwd, name), `server: {port: ${index + 1}}`)
    const env = { PORTOLAN_CONFIG: 'b.yaml' }
    expect(loadConfig({ env: {}, cwd }).server.port).toBe(1)
    expect(loadConfig({ env, cwd }).server.port).toBe(2)
    expect(loadConfig({ file: 'c.yaml', env, cwd }).source.file).toBe(join(cwd, 'c.yaml'))
  })

  it('must exist, be text and be small when it is named', () => {
    using folder = temporaryFolder()
    const cwd = folder.path
    mkdirSync(join(cwd, 'folder'))
    writeFileSync(join(cwd, 'latin.yaml'), Buffer.from([0x61, 0xff]))
    writeFileSync(join(cwd, 'large.yaml'), '#'.repeat(1_048_577))
    const problems = ['missing.yaml', 'folder', 'latin.yaml', 'large.yaml'].flatMap((file) =>
      sentencesOf(() => loadConfig({ file, env: {}, cwd })),
    )
    expect(problems).toMatchInlineSnapshot(`
      [
        "The configuration file missing.yaml does not exist.",
        "The configuration file folder is a folder.",
        "The configuration file latin.yaml is not UTF-8 text.",
        "The configuration file large.yaml is larger than 1 MiB.",
      ]
    `)
  })

  it('may be empty, and so may its sections', () => {
    expect(loadText('').server.port).toBe(4000)
    expect(loadText('server:\n  # port: 1\nchains:\n  c:\n').server.port).toBe(4000)
  })

  it('gives relative paths their start', () => {
    using folder = temporaryFolder()
    mkdirSync(join(folder.path, 'etc'))
    writeFileSync(
      join(folder.path, 'etc/p.yaml'),
      'data_dir: ../var\nsecurity: {master_key: file:key}\n',
    )
    const config = loadConfig({ file: 'etc/p.yaml', env: {}, cwd: folder.path })
    expect(config.data_dir).toBe(join(folder.path, 'var'))
    expect(config.security.master_key).toBe(`file:${join(folder.path, 'etc/key')}`)
    const env = { PORTOLAN_DATA_DIR: 'here' }
    expect(loadConfig({ env, cwd: '/srv' }).data_dir).toBe('/srv/here')
  })
})
