import { createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { GrpcTypes } from '@mysten/sui/grpc'
import { encodeBase58 } from '../src/lib/base58.ts'

/** How many transactions a checkpoint has, and how many balances each of them changes. */
const perCheckpoint = 50
const sui = `0x${'2'.padStart(64, '0')}::sui::SUI`
const coral = `0x${'9'.padStart(64, '0')}::coral::CORAL`

const [checkpoints = 0, perSecond = 0] = process.argv.slice(2).map(Number)

const digestOf = (kind: number, number: number): string => {
  const bytes = Buffer.alloc(32, kind)
  bytes.writeUInt32BE(number, 0)
  return encodeBase58(bytes)
}
const addressOf = (number: number): string => `0x7${number.toString(16).padStart(63, '0')}`

/** A payment of SUI, and of another coin in every third one; all between different addresses. */
const transaction = (number: number): GrpcTypes.ExecutedTransaction => {
  const [from, to] = [addressOf(number * 2), addressOf(number * 2 + 1)]
  const coinType = number % 3 === 0 ? coral : sui
  return {
    digest: digestOf(2, number),
    transaction: { sender: from, gasPayment: { owner: from, objects: [] } },
    signatures: [],
    effects: GrpcTypes.TransactionEffects.create({
      status: { success: true },
      gasUsed: {
        computationCost: 1_000_000n,
        storageCost: 1_976_000n,
        storageRebate: 978_120n,
        nonRefundableStorageFee: 9_880n,
      },
    }),
    balanceChanges: [
      { address: from, coinType: sui, amount: '-1997880' },
      { address: from, coinType, amount: `-${1_000_000 + number}` },
      { address: to, coinType, amount: `${1_000_000 + number}` },
    ],
  }
}
const checkpoint = (number: number): GrpcTypes.Checkpoint => ({
  sequenceNumber: BigInt(number),
  digest: digestOf(1, number),
  summary: {
    timestamp: { seconds: 1_780_000_000n + BigInt(number >> 2), nanos: 0 },
    previousDigest: digestOf(1, Math.max(0, number - 1)),
    commitments: [],
  },
  transactions: Array.from({ length: perCheckpoint }, (_, at) =>
    transaction(number * perCheckpoint + at),
  ),
})
const frame = (body: Uint8Array): Buffer => {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}
// Everything is encoded beforehand: this process must not be what is measured.
const frames = Array.from({ length: checkpoints + 1 }, (_, number) =>
  frame(
    GrpcTypes.SubscribeCheckpointsResponse.toBinary({
      cursor: BigInt(number),
      checkpoint: checkpoint(number),
    }),
  ),
)
let shown = 0

const end = (response: Http2ServerResponse): void => {
  response.addTrailers({ 'grpc-status': '0' })
  response.end()
}
const server = createServer((request: Http2ServerRequest, response: Http2ServerResponse) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'application/grpc' })
  if (request.url.endsWith('/SubscribeCheckpoints')) {
    response.write(frames[0]!)
    const begun = performance.now()
    const timer = setInterval(() => {
      const due = Math.floor(((performance.now() - begun) / 1_000) * (perSecond / perCheckpoint))
      while (shown < Math.min(due, checkpoints)) response.write(frames[++shown]!)
      if (shown === checkpoints) clearInterval(timer)
    }, 5)
    response.on('close', () => clearInterval(timer))
    return
  }
  const isInfo = request.url.endsWith('/GetServiceInfo')
  const info = GrpcTypes.GetServiceInfoResponse.create({
    chainId: digestOf(1, 0),
    checkpointHeight: BigInt(shown),
    lowestAvailableCheckpoint: 0n,
  })
  const found = GrpcTypes.GetCheckpointResponse.create({ checkpoint: checkpoint(shown) })
  response.write(
    frame(
      isInfo
        ? GrpcTypes.GetServiceInfoResponse.toBinary(info)
        : GrpcTypes.GetCheckpointResponse.toBinary(found),
    ),
  )
  end(response)
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  const bytes = frames.reduce((sum, { length }) => sum + length, 0)
  process.stdout.write(
    `${JSON.stringify({ port, genesis: digestOf(1, 0), bytes: bytes / ((checkpoints + 1) * perCheckpoint) })}\n`,
  )
})
