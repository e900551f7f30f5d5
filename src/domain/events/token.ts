import { toTimestamp } from '../../lib/clock.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Context, Handler } from '../context.ts'

/** What a stream token opens, for whom and until when. */
export type StreamToken = {
  credential_id: string
  /** The address without `/v1` and `/events`: `c`, `base/sepolia`, or empty for the stream of all chains. */
  at: string
  /** Spent by the connection that it opens. */
  nonce: string
  /** Unix time in milliseconds. */
  made: number
}

/** Time to connect with a token. */
export const tokenLifeMs = 60_000

const purpose = 'stream_token'

/** Makes a token that opens one stream. It is sealed, so that every process accepts it and no client can make one. */
export const CreateStreamToken: Handler<object, { token: string; expire_time: string }> = async (
  context,
) => {
  const { ids, sealer, clock, principal } = context
  const token: StreamToken = {
    credential_id: principal.credential_id,
    at: addressOf(context),
    nonce: `stream:${ids.bytes(16).toString('base64url')}`,
    made: clock.now(),
  }
  return {
    token: sealer.seal(JSON.stringify(token), purpose).toString('base64url'),
    expire_time: toTimestamp(token.made + tokenLifeMs),
  }
}

const addressOf = ({ service, chain, network }: Context): string =>
  service === 'admin' ? '' : network === undefined ? chain : `${chain}/${network}`

/** Opens a token; undefined where it is none of this installation, of another stream, or too old. */
export function readStreamToken(
  sealer: Pick<Sealer, 'open'>,
  text: string,
  { at, now }: { at: string; now: number },
): StreamToken | undefined {
  try {
    const sealed = Buffer.from(text, 'base64url')
    // Node skips what is not base64, so that a token with something added would open as well.
    if (sealed.toString('base64url') !== text) return undefined
    const token = JSON.parse(sealer.open(sealed, purpose).toString('utf8')) as StreamToken
    const isFresh = now < token.made + tokenLifeMs && token.made < now + tokenLifeMs
    return token.at === at && isFresh ? token : undefined
  } catch {
    return undefined
  }
}
