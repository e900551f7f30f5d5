import { expect, it } from 'vitest'
import { printConfig } from './describe.ts'
import { maskSecret } from './secrets.ts'
import { loadText } from './testing/fixture.ts'

it('prints every value, masked where it is secret, with its origin', () => {
  const text = `server:
  port: 80
database: {url: 'postgres://user:topsecret@host/db?sslpassword=topsecret'}
security: {master_key: topsecret}
chains:
  c:
    networks:
      mainnet:
        upstreams:
          - url: https://node/v3/topsecret
            headers: {authorization: topsecret, x-other: env:OTHER}
          - url: wss://plain:8546
`
  const env = { PORTOLAN_SERVER__HOST: '0.0.0.0' }
  const config = loadText(text, {
    env,
    overrides: { data_dir: '/data', logging: { level: 'warn' } },
  })
  const printed = printConfig(config).replace(/(file: ).*/, '$1portolan.yaml')
  expect(printed).not.toContain('topsecret')
  expect(printed).toMatchInlineSnapshot(`
    "# Configuration file: portolan.yaml

    data_dir: /data # command line
    server:
      host: 0.0.0.0 # PORTOLAN_SERVER__HOST
      port: 80 # file, line 2
      base_path: "" # default
      console: true # default
      workers: auto # default
      reuse_port: true # default
      roles:
        - api # default
        - gateway # default
        - tracker # default
        - courier # default
        - sender # default
        - console # default
      trust_proxy: false # default
      body_limit_bytes: 1048576 # default
      body_bytes_limit: 536870912 # default
      body_bytes_per_address: 134217728 # default
      connections_limit: 32768 # default
      connections_per_address: 4096 # default
      streams_per_key: 20 # default
      streams_per_organization: 100 # default
      header_timeout_seconds: 10 # default
      request_timeout_seconds: 30 # default
      operation_timeout_seconds: 40 # default
      keep_alive_timeout_seconds: 65 # default
      shutdown_timeout_seconds: 25 # default
    database:
      url: postgres://user:********@host/db?sslpassword=******** # file, line 3
      replica_urls: [] # default
      pool_size: 10 # default
      worker_pool_size: 10 # default
      statement_timeout_seconds: 30 # default
      embedded:
        settings: {} # default
        backup:
          archive_timeout_seconds: 60 # default
    redis:
      key_prefix: "portolan:" # default
      when_unreachable: share # default
    security:
      master_key: "********" # file, line 4
      master_key_refresh_seconds: 30 # default
      nonce_window_seconds: 300 # default
      auth_failures_burst: 200 # default
      auth_failures_per_second: 5 # default
      auth_failures_delay_ms: 1000 # default
    limits:
      per_second_limit: 100 # default
      per_hour_limit: 100000 # default
      per_day_limit: 1000000 # default
      per_month_limit: 20000000 # default
      replicas: 1 # default
    quotas:
      wallets: 100000 # default
      addresses: 10000000 # default
      webhooks: 10000 # default
      webhook_headers: 50000 # default
      contracts: 10000 # default
      open_transactions: 100000 # default
    gateway:
      allowed_methods:
        - evm_chainId # default
        - evm_getBlockReceipts # default
        - evm_feeHistory # default
        - evm_maxPriorityFeePerGas # default
        - evm_blobBaseFee # default
        - evm_getProof # default
        - evm_createAccessList # default
        - evm_simulateV1 # default
        - web3_sha3 # default
      batch_limit: 1000 # default
      body_limit_bytes: 5242880 # default
      batch_response_limit_bytes: 26214400 # default
      timeout_seconds: 30 # default
      cache_bytes: 67108864 # default
      sleep_after_minutes: 10 # default
      logs_max_range: 10000 # default
      connections_per_key: 1000 # default
      subscriptions_per_key: 2000 # default
      filters_per_key: 500 # default
      filter_terms_per_key: 100000 # default
      filter_terms_per_organization: 200000 # default
      notifications_limit_bytes: 67108864 # default
    webhooks:
      timeout_seconds: 15 # default
      concurrency: 16 # default
      in_flight_limit: 2000 # default
      history_retention_days: 90 # default
    transactions:
      created_expiry_hours: 72 # default
    balances:
      reconcile_hours: 24 # default
    audit:
      retention_days: 400 # default
    logging:
      level: warn # command line
      format: auto # default
      gateway_share: 0.01 # default
    telemetry:
      headers: {} # default
      service_name: portolan # default
      trace_share: 0.01 # default
      logs: false # default
    metadata: {} # default
    chains:
      c:
        shared: false # default
        kind: evm # default
        prefix: eth # default
        default_network: mainnet # default
        networks:
          mainnet:
            proof: root # default
            unproven_types: [] # default
            verify_senders: true # default
            multicall: "0xca11bde05977b3631167028862be2a173976ca11" # default
            upstreams:
              - url: https://node/******** # file, line 10
                headers:
                  authorization: "********" # file, line 11
                  x-other: env:OTHER # file, line 11
                priority: 0 # default
              - url: wss://plain:8546 # file, line 12
                headers: {} # default
                priority: 0 # default
    "
  `)
})

it.each([
  ['secret', undefined, '********'],
  ['env:NAME', undefined, 'env:NAME'],
  ['file:/run/x', 'path', 'file:/run/x'],
  ['postgres://host/db', 'password', 'postgres://host/db'],
  ['postgres://user:p%40ss@host:5432/db', 'password', 'postgres://user:********@host:5432/db'],
  [
    'postgres:///db?host=/run&password=x',
    'password',
    'postgres:///db?host=%2Frun&password=********',
  ],
  ['redis://:p@host', 'password', 'redis://:********@host'],
  ['https://host', 'path', 'https://host'],
  ['https://host:8545/', 'path', 'https://host:8545/'],
  ['https://user:key@host', 'path', 'https://host/********'],
  ['https://host/v3/key', 'path', 'https://host/********'],
  ['https://host/?key=1', 'path', 'https://host/********'],
  ['not an address', 'path', '********'],
] as const)('shows %s (%s) as %s', (value, mask, shown) => {
  expect(maskSecret(value, mask)).toBe(shown)
})
