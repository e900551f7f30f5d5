import { isContinue } from '../exchange.ts'
import { isJsonType, rpcTypes } from '../json-type.ts'

/** What the gateway reads of the headers of a request. */
export type GatewayHeaders = {
  /** A well-formed id that the caller gave. */
  request_id: string | undefined
  /** 0 when it is unknown. */
  contentLength: number
  /** What proxies say about the client, as sent. */
  forwardedFor: string | undefined
  /** The key of `Authorization: Bearer`, given once. */
  bearer: string | undefined
  /** Whether the client waits for `100 Continue` before it sends the body. */
  expectsContinue: boolean
  /** Whether the body is JSON in UTF-8 without a content encoding. */
  isJson: boolean
}

/** RFC 6750, 2.1, as far as keys of the service go; longer values are not looked at. */
const bearerKey = /^bearer {1,8}([\w-]{1,200})$/i
const wellFormedId = /^[\w.:-]{1,100}$/

/**
 * Reads the few headers that matter from the list as it came: to build the object of all headers for
 * every call would cost more than a look-up in the cache.
 */
export function readGatewayHeaders(raw: readonly string[]): GatewayHeaders {
  let request_id: string | undefined
  let contentLength = 0
  let forwardedFor: string | undefined
  let bearer: string | undefined
  let authorizations = 0
  let expectsContinue = false
  let isJson = false
  let isEncoded = false
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] as string
    const value = raw[index + 1] as string
    // Only names of these lengths can be among those sought.
    if (name.length === 6) {
      if (name.toLowerCase() === 'expect') expectsContinue = isContinue(value)
    } else if (name.length === 12) {
      const lower = name.toLowerCase()
      if (lower === 'content-type') isJson = isJsonType(value, rpcTypes)
      else if (lower === 'x-request-id' && wellFormedId.test(value)) request_id = value
    } else if (name.length === 13) {
      if (name.toLowerCase() === 'authorization') {
        bearer = authorizations++ === 0 ? bearerKey.exec(value)?.[1] : undefined
      }
    } else if (name.length === 14) {
      if (name.toLowerCase() === 'content-length') contentLength = Number(value)
    } else if (name.length === 15) {
      if (name.toLowerCase() === 'x-forwarded-for')
        forwardedFor = forwardedFor === undefined ? value : `${forwardedFor},${value}`
    } else if (name.length === 16) {
      if (name.toLowerCase() === 'content-encoding') isEncoded = value.toLowerCase() !== 'identity'
    }
  }
  return {
    ...{ request_id, contentLength, forwardedFor, bearer, expectsContinue },
    isJson: isJson && !isEncoded,
  }
}
