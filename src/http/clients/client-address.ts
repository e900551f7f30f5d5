// Rules about clients: address behind proxies, CORS, trusted hosts, connection and body limits.
// Pure decisions without access to storage.

import { isIPv4 } from 'node:net'
import { createNetworkList, type NetworkList, parseAddress } from '../../lib/net/ip.ts'

/**
 * The address of a client: of the connection, or what trusted proxies say about it. Text of the form that
 * `parseAddress` gives; `unknown` when the connection is gone.
 */
export type ClientAddress = (
  /** Of the connection. */
  peer: string | undefined,
  /** The value of `X-Forwarded-For`; several such headers are joined by commas. */
  forwardedFor: string | undefined,
) => string

/** `server.trust_proxy`: no proxy, so many proxies in a row, or proxies in these networks. */
export type TrustProxy = boolean | number | readonly string[]

/** More proxies than any request passes; a longer list is not followed to its end. */
const maxProxies = 32

/**
 * Finds the client behind proxies. `X-Forwarded-For` is read from its right end, where the nearest proxy
 * has written the address it was called from: the first entry that is not a trusted proxy is the client,
 * and what stands left of it is the client's own claim. An entry that is not an address ends the search with
 * the proxy that has passed it on. `Forwarded` (RFC 7239) is not read: a proxy that writes one of the two
 * headers passes the other one on as the client sent it, and the service cannot know which one the proxy writes.
 */
export function createClientAddress(trust: TrustProxy): ClientAddress {
  const isTrusted = trustOf(trust)
  if (!isTrusted) return (peer) => addressOf(peer)
  return (peer, forwardedFor) => {
    let address = addressOf(peer)
    if (forwardedFor === undefined) return address
    let end = forwardedFor.length
    for (let hop = 0; end >= 0 && hop < maxProxies && isTrusted(address, hop); hop++) {
      const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1)
      const next = parseEntry(forwardedFor.slice(comma + 1, end).trim())
      if (next === undefined) return address
      address = next
      end = comma
    }
    return address
  }
}

/** Whether connections from an address are those of a trusted proxy. */
export function createIsProxy(trust: TrustProxy): (address: string) => boolean {
  const isTrusted = trustOf(trust)
  return (address) => isTrusted?.(address, 0) ?? false
}

/** Undefined when no proxy is trusted. */
function trustOf(trust: TrustProxy): ((address: string, hop: number) => boolean) | undefined {
  if (typeof trust === 'boolean' || typeof trust === 'number') {
    const proxies = Number(trust)
    return proxies > 0 ? (_address, hop) => hop < proxies : undefined
  }
  if (trust.length === 0) return undefined
  const list: NetworkList = createNetworkList(trust)
  return (address) => list.has(address)
}

/** Addresses of connections are well-formed; on a dual-stack socket IPv4 comes inside IPv6. */
function addressOf(peer: string | undefined): string {
  if (peer === undefined) return 'unknown'
  return peer.includes(':') ? (parseAddress(peer) ?? 'unknown') : peer
}

const bracketed = /^\[([\dA-Fa-f:.]{2,45})\](?::\d{1,5})?$/
const withPort = /^([\d.]{7,15}):\d{1,5}$/

/** Some proxies write a port behind the address (`192.0.2.1:4711`, `[2001:db8::1]:4711`). */
function parseEntry(text: string): string | undefined {
  if (isIPv4(text)) return text
  // A zone means something on the machine of the proxy only.
  if (text.length > 64 || text.includes('%')) return undefined
  const bare = bracketed.exec(text)?.[1] ?? withPort.exec(text)?.[1] ?? text
  return parseAddress(bare)
}
