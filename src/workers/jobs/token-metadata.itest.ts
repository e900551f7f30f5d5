import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { createReachable } from '../../lib/net/reachable.ts'
import { createGuardedFetch } from '../webhooks/guarded-fetch.ts'
import { startTokenMetadata } from './token-metadata.ts'

const database = await freshDatabase()
const { db } = database
const { startBench, settled } = createTrackedBenches(database)
const big = `{"image":"${'x'.repeat(300_000)}"}`
let failures = 2
const server = createServer((request, response) => {
  const answers: Record<string, [number, string]> = {
    '/1.json': [200, ' {"name":"One"} '],
    '/ipfs/cid/4': [200, '{"name":"Four"}'],
    '/big': [200, big],
    '/text': [200, 'hello'],
    '/moved': [302, ''],
  }
  const shaky: [number, string] = failures-- > 0 ? [503, ''] : [200, '{"name":"Late"}']
  const [status, body] = request.url === '/shaky' ? shaky : (answers[request.url!] ?? [404, ''])
  response.writeHead(status, status === 302 ? { location: '/1.json' } : {}).end(body)
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

const base64 = Buffer.from('{"name":"Two"}').toString('base64')
const cases: [uri: string, token_data: string][] = [
  [`${base}/1.json`, '{"name":"One"}'],
  [`data:application/json;base64,${base64}`, '{"name":"Two"}'],
  ['data:application/json;utf8,{"name":"100%"}', '{"name":"100%"}'],
  ['data:application/json,%7B%22name%22%3A%22Three%22%7D', '{"name":"Three"}'],
  ['ipfs://cid/4', '{"name":"Four"}'],
  ['ipfs://ipfs/cid/4', '{"name":"Four"}'],
  [`${base}/shaky`, '{"name":"Late"}'],
  // Nothing to be had: too big, no JSON, elsewhere, gone, another scheme, no URI at all.
  [`${base}/big`, ''],
  [`${base}/text`, ''],
  [`${base}/moved`, ''],
  [`${base}/gone`, ''],
  ['file:///etc/passwd', ''],
  ['', ''],
]

const describeItems = async (reachable: string[], uris: readonly string[]) => {
  const { bench, caller, start } = await startBench('c')
  const { chain, network_id, account, address } = bench
  chain.addToken(account(72), 'CONTRACT_TYPE_ERC721', { name: 'Items', symbol: 'IT' })
  await caller.call('RegisterContract', {
    contract_address: address(72),
    contract_type: 'CONTRACT_TYPE_ERC721',
  })
  expect((await caller.call('ListContracts')).contracts[0].contract_metadata).toEqual({
    erc721: { contract_address: address(72), name: 'Items', symbol: 'IT' },
  })
  const { wallet_id } = await caller.call('RegisterWallet', {
    name: 'w',
    address: address(1),
    confirmation: 1,
  })
  start()
  await settled(bench)
  const item = (at: number) => ({
    asset_type: 'ASSET_TYPE_ERC721' as const,
    contract_address: account(72),
    token_id: BigInt(at),
  })
  for (const [at, uri] of uris.entries()) if (uri) chain.setTokenUri(account(72), BigInt(at), uri)
  chain.mine([{ movements: uris.map((_, at) => ({ to: account(1), value: 1n, asset: item(at) })) }])
  await settled(bench)
  const queued = await db.selectFrom('job').select('organization_id').distinct().execute()
  expect(queued).toEqual([{ organization_id: caller.organization_id }])
  const fetch = createGuardedFetch({ reachable: createReachable(reachable), allowHttp: true })
  const worker = startTokenMetadata({
    db,
    clock: systemClock,
    log: silentLog,
    network_id,
    chain,
    fetch,
    ipfsGateway: `${base}/ipfs/`,
    pollMs: 20,
    firstPauseMs: 20,
  })
  onTestFinished(async () => {
    await worker.stop()
    await fetch.stop()
  })
  await waitFor('the job is gone', async () => {
    const jobs = await db
      .selectFrom('job')
      .select('job_id')
      .where('network_id', '=', network_id)
      .execute()
    return jobs.length === 0
  })
  const request = { wallet_id, page_size: 100 }
  const { transfers } = await caller.call('ListTransfers', request)
  const { assets } = await caller.call('ListAssets', {
    ...request,
    asset_type: 'ASSET_TYPE_ERC721',
  })
  const read = (records: { erc721: Record<string, string> }[]) =>
    records
      .map(({ erc721 }) => erc721)
      .toSorted((one, other) => Number(one.token_id) - Number(other.token_id))
      .map(({ token_uri, token_data }) => [token_uri, token_data])
  const listed = read(assets.map((asset: { asset_metadata: never }) => asset.asset_metadata))
  expect(read(transfers.map((one: { transfer_metadata: never }) => one.transfer_metadata))).toEqual(
    listed,
  )
  return listed
}

it('items are described by what their contract and the JSON behind it say', async () => {
  const listed = await describeItems(
    ['127.0.0.0/8'],
    cases.map(([uri]) => uri),
  )
  expect(listed).toEqual(cases)
})

it('an address that is not public is never asked', async () => {
  const listed = await describeItems([], [`${base}/1.json`, 'ipfs://cid/4'])
  expect(listed).toEqual([
    [`${base}/1.json`, ''],
    ['ipfs://cid/4', ''],
  ])
})
