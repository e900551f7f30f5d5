import { connectionOf, type Layout } from './layout.ts'

/** PostgreSQL settings by name, as in `postgresql.conf`. */
export type Settings = Readonly<Record<string, string | number | boolean>>

// What a small server beside the service needs; all of it can be overridden.
const defaultSettings: Settings = {
  // Eight workers, the background, the supervisor, and processes that replace others.
  max_connections: 100,
  shared_buffers: '128MB',
  effective_cache_size: '512MB',
  work_mem: '8MB',
  maintenance_work_mem: '64MB',
  random_page_cost: 1.1,
  fsync: true,
  synchronous_commit: true,
  full_page_writes: true,
  wal_compression: true,
  min_wal_size: '80MB',
  max_wal_size: '1GB',
  autovacuum: true,
  // Containers give 64 MB of /dev/shm, which parallel plans outgrow; the cores are the service's.
  max_parallel_workers_per_gather: 0,
  jit: false,
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  log_line_prefix: '%m [%p] ',
  log_checkpoints: false,
}

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

const print = (value: string | number | boolean): string =>
  typeof value === 'string'
    ? quote(value)
    : typeof value === 'boolean'
      ? value
        ? 'on'
        : 'off'
      : `${value}`

/** The configuration file of one server, later lines win: initdb's values, our defaults, the operator's settings, fixed settings. */
export const renderSettings = (layout: Layout, settings: Settings = {}): string => {
  // Last, so that no setting of an operator opens a port or another socket.
  const enforced: Settings = {
    listen_addresses: '',
    port: connectionOf(layout).port,
    unix_socket_directories: layout.socket,
    unix_socket_permissions: '0700',
    logging_collector: false,
  }
  const lines = Object.entries({ ...defaultSettings, ...settings, ...enforced }).map(
    ([name, value]) => `${name} = ${print(value)}`,
  )
  return [
    '# Written by Portolan at every start; changes here are lost.',
    `include_if_exists = ${quote(`${layout.data}/postgresql.conf`)}`,
    ...lines,
    '',
  ].join('\n')
}
