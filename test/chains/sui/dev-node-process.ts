import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** The dev node as a process of its own. */
export type NodeProcess = {
  facts: { node_url: string; chain_id: string; faucet_address: string; faucet_key: string }
  process: ChildProcess
  startMs: number
  /** Kills it. */
  kill(): Promise<void>
}

/** Starts it and waits for its line. */
export async function spawnSuiNode(...args: string[]): Promise<NodeProcess> {
  const begun = performance.now()
  const child = spawn(process.execPath, ['devnet/sui/main.ts', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string]
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { facts: JSON.parse(line), process: child, startMs: performance.now() - begun, kill }
}
