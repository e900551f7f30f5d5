import { networkInterfaces } from 'node:os'
import { createNetworkList, createSubnetList, familyOf, type Subnet } from './ip.ts'

/** Which addresses outgoing requests of users may reach. */
export type Reachable = {
  /** Whether a connection to this IP address is allowed. */
  allows(address: string): boolean
  /** Whether anything private is: then names of the operator's own network may be looked up too. */
  readonly hasPrivate: boolean
}

// The special-purpose registries of IANA, and what clouds put on public-looking addresses.
const forbiddenV4: readonly Subnet[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32], // Azure's wire server
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

// Of IPv6 only 2000::/3 is public at all; these parts of it carry other addresses or documentation.
const publicV6: Subnet = ['2000::', 3]
const forbiddenV6: readonly Subnet[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const ownAddresses = (): Subnet[] =>
  Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).map(({ address, family }) => [address, family === 'IPv4' ? 32 : 128] as const),
  )

/**
 * Allows public addresses, and private ones only where an allowed network reports it. An IPv4 address
 * inside an IPv6 one (`::ffff:127.0.0.1`) is judged as the IPv4 address.
 */
export const createReachable = (allowedNetworks: readonly string[] = []): Reachable => {
  const allowed = createNetworkList(allowedNetworks)
  // Our own public addresses too: a firewall does not stop what comes from inside.
  const forbidden = createSubnetList([...forbiddenV4, ...forbiddenV6, ...ownAddresses()])
  const global = createSubnetList([publicV6])
  const mapped = createSubnetList([['::ffff:0:0', 96]])
  return {
    hasPrivate: allowedNetworks.length > 0,
    allows: (address) => {
      const family = familyOf(address)
      // A zone (`fe80::1%eth0`) names a link of this machine.
      if (!family || address.includes('%')) return false
      if (allowed.has(address)) return true
      if (forbidden.has(address)) return false
      return family === 'ipv4' || global.has(address) || mapped.has(address)
    },
  }
}
