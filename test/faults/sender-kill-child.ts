import pg from 'pg'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import { SendTransaction } from '../../src/domain/transactions/send.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { type Connection, openDatabase } from '../../src/storage/pg/database.ts'
import { findTransaction } from '../../src/storage/transactions/transactions.ts'
import { checkTransaction } from '../../src/workers/sender/check-transaction.ts'
import { oneChain } from '../helpers/one-chain.ts'

/** What the child does, and at which of its points it is killed. */
export type Deed = {
  work: 'send' | 'check'
  connection: Connection
  url: string
  network_id: number
  organization_id: string
  transaction_id: string
  /** How far its clock is ahead of the machine's, in milliseconds. */
  ahead: number
  point: number
}

/** A process that sends one transaction and dies on the way, or says how many points there are. */
async function main(deed: Deed): Promise<void> {
  let points = 0
  const pass = () => {
    // No handler, no flush, no goodbye.
    if (++points === deed.point) process.kill(process.pid, 'SIGKILL')
  }
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  pg.Client.prototype.query = async function (this: pg.Client, ...args: unknown[]) {
    pass()
    const answer = await query.apply(this, args)
    pass()
    return answer
  } as typeof pg.Client.prototype.query

  const clock = { ...systemClock, now: () => Date.now() + deed.ahead }
  const { db, stop } = openDatabase({ connection: deed.connection, log: silentLog })
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: [{ url: deed.url }],
    clock,
    log: silentLog,
  })
  const chain = createEvmChain({ pool })
  const sending = {
    ...chain.sending!,
    broadcast: async (raw: Buffer, hash: Buffer) => {
      pass()
      const handing = chain.sending!.broadcast(raw, hash)
      pass()
      // The bytes are on their way, the answer is not.
      await new Promise((resolve) => setImmediate(resolve))
      pass()
      const handover = await handing
      pass()
      return handover
    },
  }
  const { network_id, organization_id, transaction_id } = deed
  const signal = new AbortController().signal
  if (deed.work === 'send')
    await SendTransaction(
      {
        db,
        clock,
        ids: systemIds,
        sealer: createSealer(Buffer.alloc(32)),
        log: silentLog,
        chains: oneChain(network_id, () => ({ ...chain, sending })),
        principal: { credential_id: '', organization_id, role: 'ROLE_MEMBER' },
        service: 'c',
        chain: 'c',
        operation: 'SendTransaction',
        signal,
      },
      { transaction_id },
    )
  else {
    const row = await findTransaction(db, { organization_id, network_id }, transaction_id)
    await checkTransaction({ db, clock, log: silentLog, network_id, sending }, row!, signal)
  }
  process.stdout.write(String(points))
  await chain.stop()
  await pool.stop()
  await stop()
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!))
