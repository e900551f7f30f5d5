import { createServer } from 'node:http'
import { GetOrganizationByDomain } from '../src/domain/admin/organizations.ts'
import { systemClock } from '../src/lib/clock.ts'
import { systemIds } from '../src/lib/ids.ts'
import { silentLog } from '../src/lib/log.ts'
import { createSealer } from '../src/storage/access/seal.ts'
import { openDatabase } from '../src/storage/pg/database.ts'

// The same handler on the same database behind a bare node:http server: no authentication, no limits, no checks.
const [host = '', user = '', database = '', port = ''] = process.argv.slice(2)
const { db } = openDatabase({
  connection: { host, user, database, port: Number(port) },
  log: silentLog,
})
const context = {
  db,
  clock: systemClock,
  ids: systemIds,
  sealer: createSealer(Buffer.alloc(32)),
  log: silentLog,
  principal: { credential_id: '', organization_id: '', role: 'ROLE_ADMIN' as const },
  service: 'admin' as const,
  chain: 'admin',
  operation: 'GetOrganizationByDomain',
  signal: new AbortController().signal,
}
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', async () => {
    const body = JSON.parse(Buffer.concat(chunks).toString())
    const answer = JSON.stringify(await GetOrganizationByDomain(context, body))
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  })
})
server.listen(0, '127.0.0.1', () => {
  console.log((server.address() as { port: number }).port)
})
