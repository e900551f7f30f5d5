import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConnectionFile } from '../../app/connection-file.ts'
import { tryListen } from '../../lib/net/try-listen.ts'
import { explain } from '../explain.ts'
import type { DoctorContext } from './finding.ts'
import { type Finding, failure, ok } from './finding.ts'

const patienceMs = 3_000

/** Whether the port is free, or taken by the service of this data directory. */
export async function* checkPort({ config, dataDir }: DoctorContext): AsyncGenerator<Finding> {
  const { host, port } = config.server
  const running = await runningService(dataDir)
  if (running !== undefined) {
    yield ok('port', `the service is running at ${running}`)
    return
  }
  const error = await tryListen(host, port)
  if (error === undefined) yield ok('port', port === 0 ? 'any free one' : `${host}:${port} is free`)
  else
    yield failure(
      'port',
      explain(error) ?? error.message,
      `See who listens there: ss -ltnp "sport = :${port}" (Linux) or lsof -i :${port}`,
    )
}

async function runningService(dataDir: string): Promise<string | undefined> {
  try {
    const text = await readFile(join(dataDir, 'connection.json'), 'utf8')
    const { base_url } = JSON.parse(text) as ConnectionFile
    const signal = AbortSignal.timeout(patienceMs)
    const answer = await fetch(`${base_url}/health`, { signal })
    return answer.ok ? base_url : undefined
  } catch {
    return undefined
  }
}
