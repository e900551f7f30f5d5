// Addresses, networks and endpoints: which address a text means, whether it is public, loopback or allowed. Pure
// functions, except `try-listen` and `reachable`, which use the network of the machine.

import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net'

/** A network as an address and the length of its prefix. */
export type Subnet = readonly [network: string, prefix: number]

/** A set of networks. */
export type NetworkList = {
  /**
   * Whether the address is in one of the networks; never for text that is not an address. An IPv4 address
   * inside an IPv6 one (`::ffff:10.0.0.1`) is judged as the IPv4 address.
   */
  has(address: string): boolean
}

const mappedPrefix = '::ffff:'

/** The family as `BlockList` names it; undefined when the text is not an address. */
export const familyOf = (address: string): 'ipv4' | 'ipv6' | undefined => {
  const version = isIP(address)
  return version === 0 ? undefined : version === 4 ? 'ipv4' : 'ipv6'
}

/**
 * The one text of an address: IPv6 in lower case and compressed, without a zone, and an IPv4 address
 * inside an IPv6 one as IPv4. Undefined when the text is not an address.
 */
export function parseAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  if (isIP(text) === 0) return undefined
  const { address } = new SocketAddress({ address: text, family: 'ipv6' })
  if (!address.startsWith(mappedPrefix)) return address
  const inner = address.slice(mappedPrefix.length)
  return isIPv4(inner) ? inner : address
}

/** Reads `10.0.0.0/8`, `fd00::/8` or one address; undefined when it is none of these. */
export const parseSubnet = (text: string): Subnet | undefined => {
  const [network = '', prefix, ...rest] = text.split('/')
  const family = familyOf(network)
  if (!family || rest.length > 0 || network.includes('%')) return undefined
  const widest = family === 'ipv4' ? 32 : 128
  if (prefix === undefined) return [network, widest]
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > widest) return undefined
  return [network, Number(prefix)]
}

/** A list of networks that are known to be well-formed. */
export const createSubnetList = (subnets: readonly Subnet[]): NetworkList => {
  const list = new BlockList()
  for (const [network, prefix] of subnets)
    list.addSubnet(network, prefix, network.includes(':') ? 'ipv6' : 'ipv4')
  return {
    has: (address) => {
      const family = familyOf(address)
      return family !== undefined && list.check(address, family)
    },
  }
}

/** A list of networks as written: `10.0.0.0/8`, `fd00::/8` or one address. */
export const createNetworkList = (texts: readonly string[]): NetworkList =>
  createSubnetList(
    texts.map((text) => {
      const subnet = parseSubnet(text)
      if (!subnet) throw new RangeError(`"${text}" is no network such as 10.0.0.0/8`)
      return subnet
    }),
  )

/**
 * Who counts as one client: an IPv4 address, or the /64 of an IPv6 address, because one subscriber line
 * has at least that many addresses (RFC 6177). Takes the text that `parseAddress` gives.
 */
export function clientGroup(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail ? tail.split(':') : []
  if (tail !== undefined) while (left.length + right.length < 8) left.push('0')
  return `${[...left, ...right].slice(0, 4).join(':')}::/64`
}
