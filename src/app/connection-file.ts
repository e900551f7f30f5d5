import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pair } from './bootstrap.ts'

/** What a script needs to use a running service. */
export type ConnectionFile = {
  /** The process that wrote it, and may remove it. */
  pid?: number
  base_url: string
  ws_url: string
  /** Of the routes for the operator; missing when they are off. */
  admin_url?: string
  /** Signs in to the console once, within minutes of the start; only beside local chains on loopback. */
  sign_in_url?: string
  organization_id?: string
  admin?: Pair
  member?: Pair
  chains: Record<string, ConnectedChain>
}

/** A chain of the service; in the embedded mode with its local node and an account that has coin. */
export type ConnectedChain = {
  /** The default network, and all that are configured. */
  network: string
  networks?: readonly string[]
  variant: string
  kind: string
  node_url?: string
  node_ws_url?: string
  faucet_address?: string
  faucet_key?: string
  /** Token contracts that the traffic of a local EVM chain uses. */
  contracts?: { erc20: string; erc721: string }
}

const pathOf = (dataDir: string) => join(dataDir, 'connection.json')

/** Writes the file as a whole, readable for its owner only; a reader never sees half of it. */
export async function writeConnectionFile(
  dataDir: string,
  content: ConnectionFile,
): Promise<string> {
  const path = pathOf(dataDir)
  // A draft per process: two services that start at once must not write into one file.
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, path)
  return path
}

/**
 * Removes the file, so that no script waits for a stopped service. With a process id only that of this process: several
 * processes on one data directory do not remove each other's.
 */
export async function removeConnectionFile(dataDir: string, pid?: number): Promise<void> {
  const path = pathOf(dataDir)
  if (pid !== undefined) {
    const text = await readFile(path, 'utf8').catch(() => '{}')
    const { pid: writer } = parse(text)
    if (writer !== undefined && writer !== pid) return
  }
  await rm(path, { force: true })
}

const parse = (text: string): { pid?: unknown } => {
  try {
    return JSON.parse(text) as { pid?: unknown }
  } catch {
    return {}
  }
}
