import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConnectionFile } from '../../app/connection-file.ts'
import { readStatus, trackedNetworks } from '../chains/run.ts'
import type { DoctorContext } from './finding.ts'
import { type Finding, failure, ok, warning } from './finding.ts'

const fix = 'See "portolan chains" and the log of the service.'

/** Asks the service, where it runs, whether it tracks its chains. */
export async function* checkTracking({ dataDir }: DoctorContext): AsyncGenerator<Finding> {
  const text = await readFile(join(dataDir, 'connection.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return
  const { base_url, admin_url } = JSON.parse(text) as ConnectionFile
  if (admin_url === undefined) return
  const status = await readStatus(admin_url).catch(() => undefined)
  if (!status) {
    // Its file is there while it runs, and after it was killed.
    yield warning('tracking', `The service at ${base_url} does not answer.`, 'Start it again.')
    return
  }
  for (const [tag, tracking] of trackedNetworks(status.chains)) {
    const { network, health, since, problem, state, block_number } = tracking
    if (health === 'ok') {
      const far = block_number === null ? 'no block yet' : `block ${block_number}`
      yield ok('tracking', `${tag} ${network}: ${state}, ${far}`)
    } else yield failure('tracking', `${tag} ${network} since ${since}: ${problem}`, fix)
  }
  // Events that still apply were reported above.
  for (const { kind, chain, network, create_time, detail } of status.events?.open ?? [])
    if (!kind.startsWith('tracker_'))
      yield warning('tracking', `${chain} ${network}, ${kind} since ${create_time}: ${detail}`, fix)
}
