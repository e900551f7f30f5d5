import { type GatewayHeaders, readGatewayHeaders } from './gateway-headers.ts'
import { isHost } from './request-target.ts'

/** A request line and its headers, where they are as plain as can be. */
export type RequestHead = {
  url: string
  headers: GatewayHeaders
  /** Names and values in turn. */
  raw: string[]
}

const plain =
  /^POST (\/[\x21-\x7e]*) HTTP\/1\.1\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e]*\r\n)+$/
const digits = /^\d{1,9}$/
// What changes how the message ends or what the connection is for: Node's parser knows all of it. And
// a page of a browser, whose answers are marked where Node's server takes them.
const special =
  /^(?:transfer-encoding|expect|upgrade|trailer|te|proxy-connection|http2-settings|origin)$/i

/**
 * Reads a head up to and with the line break before the empty line. Undefined for everything that is
 * in any way unusual: then nothing is decided here.
 */
export function readRequestHead(head: string): RequestHead | undefined {
  const url = plain.exec(head)?.[1]
  if (url === undefined) return undefined
  const raw: string[] = []
  let lengths = 0
  let hosts = 0
  for (let at = head.indexOf('\r\n') + 2; at < head.length; ) {
    const colon = head.indexOf(':', at)
    const end = head.indexOf('\r\n', colon)
    const name = head.slice(at, colon)
    const value = head.slice(colon + 1, end).trim()
    if (special.test(name)) return undefined
    const lower = name.toLowerCase()
    if (lower === 'connection' && value.toLowerCase() !== 'keep-alive') return undefined
    if (lower === 'content-length' && (lengths++ > 0 || !digits.test(value))) return undefined
    if (lower === 'host' && (hosts++ > 0 || !isHost(value))) return undefined
    raw.push(name, value)
    at = end + 2
  }
  return lengths === 1 && hosts === 1 ? { url, headers: readGatewayHeaders(raw), raw } : undefined
}
