import { readFileSync } from 'node:fs'
import { GrpcTypes } from '@mysten/sui/grpc'

const folder = new URL('../../fixtures/sui/', import.meta.url)

/** The bytes of a recorded file. */
export const readRecorded = (name: string): Buffer => readFileSync(new URL(name, folder))

/** A mainnet checkpoint of 125 transactions, as the adapter asks for it. */
export const readCheckpoint = (): GrpcTypes.Checkpoint => {
  const { checkpoint } = JSON.parse(readRecorded('mainnet_20958462.grpc.json').toString())
  // Protobuf writes a moment as text; the recording has its parts.
  const { seconds, nanos } = checkpoint.summary.timestamp
  checkpoint.summary.timestamp = '1970-01-01T00:00:00Z'
  const read = GrpcTypes.Checkpoint.fromJson(checkpoint)
  read.summary!.timestamp = { seconds: BigInt(seconds), nanos }
  return read
}
