import type { NetworkName } from '../../storage/tracking/networks.ts'
import type { StreamRow } from '../../storage/webhooks/streams.ts'

/** A message for a broker. */
export type SinkMessage = {
  /** The same in every attempt; brokers and consumers deduplicate by it. */
  id: string
  /** The wallet, by which the order is kept; `_` where an event is of none. */
  wallet: string
  /** The CloudEvents envelope as JSON. */
  body: Buffer
}

/** Whose events these are. */
export type EventSource = NetworkName & { organization_id: string }

/** The media type of the messages. */
export const cloudEventsType = 'application/cloudevents+json; charset=UTF-8'

// Below the usual limit of brokers (1 MB), with room for the envelope. A transfer is below 20 KB.
const maxPartBytes = 512 * 1024

type Transfers = { wallet_id?: string }[]
type Data = { transfers?: Transfers; transaction?: { wallet_id?: string } }
type Part = { wallet: string; data: string }

/** Organization, chain, network and wallet: the last tokens of a subject, and the key of a record. */
export const keyParts = (
  { organization_id, chain, network }: EventSource,
  { wallet }: Pick<SinkMessage, 'wallet'>,
): string[] => [organization_id, chain, network, wallet]

/**
 * The messages of a stored event: one for each wallet, because subjects and keys are by wallet, and more than one
 * where an event has more transfers than fit in a message.
 */
export function toCloudEvents(source: EventSource, row: StreamRow): SinkMessage[] {
  const parts = partsOf(row.data)
  const { chain, network, organization_id } = source
  return parts.map(({ wallet, data }, index) => {
    const id =
      parts.length === 1 ? row.webhook_history_id : `${row.webhook_history_id}.${index + 1}`
    const envelope = JSON.stringify({
      specversion: '1.0',
      id,
      source: `/organizations/${organization_id}/${chain}/${network}`,
      type: `portolan.${row.type}`,
      ...(wallet !== noWallet && { subject: wallet }),
      time: row.create_time,
      datacontenttype: 'application/json',
      // With leading zeros: the extension orders sequences as text.
      sequence: `${row.sequence}`.padStart(20, '0'),
      part: index + 1,
      parts: parts.length,
      partitionkey: keyParts(source, { wallet }).join('/'),
    })
    return { id, wallet, body: Buffer.from(`${envelope.slice(0, -1)},"data":${data}}`) }
  })
}

const noWallet = '_'

function partsOf(text: string): Part[] {
  const { transfers = [], ...rest } = JSON.parse(text) as Data
  const byWallet = Map.groupBy(transfers, ({ wallet_id }) => wallet_id ?? noWallet)
  const [only = rest.transaction?.wallet_id ?? noWallet] = byWallet.keys()
  // Nearly every event: the text of the database as it is.
  if (byWallet.size <= 1 && text.length <= maxPartBytes / 4) return [{ wallet: only, data: text }]
  if (byWallet.size === 0) return [{ wallet: only, data: text }]
  return [...byWallet].flatMap(([wallet, mine]) =>
    chunk(mine.map((transfer) => JSON.stringify(transfer))).map((some) => {
      const head = JSON.stringify(rest).slice(0, -1)
      return { wallet, data: `${head}${head === '{' ? '' : ','}"transfers":[${some.join()}]}` }
    }),
  )
}

function chunk(texts: readonly string[]): string[][] {
  const chunks: string[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const text of texts) {
    const length = Buffer.byteLength(text)
    if (bytes + length > maxPartBytes) {
      chunks.push([])
      bytes = 0
    }
    chunks.at(-1)!.push(text)
    bytes += length
  }
  return chunks
}
