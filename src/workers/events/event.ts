import type { NetworkName } from '../../storage/tracking/networks.ts'
import type { StreamRow } from '../../storage/webhooks/streams.ts'

/** The types of events. The first four have a sequence and are stored; the others are live only. */
export const eventTypes = [
  ...['transfer', 'confirmation', 'retraction', 'transaction'],
  ...['delivery', 'head', 'reorganization', 'problem', 'node'],
] as const

/** An event as it is sent: its type, and the JSON text of the whole. */
export type StreamEvent = {
  type: string
  /** Present where the event is stored. */
  sequence?: number
  text: string
}

/** The JSON of a stored event. */
export const storedEvent = ({ chain, network }: NetworkName, row: StreamRow): StreamEvent => {
  const { type, sequence, create_time, data } = row
  // The head is written first and the braces are joined: parsing and writing the data again would
  // cost more than the read.
  const head = JSON.stringify({ type, chain, network, sequence, create_time })
  // The data is JSON text of the database already.
  return { type, sequence, text: `${head.slice(0, -1)},"data":${data}}` }
}

/** The JSON of a live event. */
export const liveEvent = (
  type: string,
  { chain, network }: NetworkName,
  create_time: Date,
  data: object,
): StreamEvent => ({ type, text: JSON.stringify({ type, chain, network, create_time, data }) })
