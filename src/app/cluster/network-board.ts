// Nodes are probed by one process for all: each worker would otherwise probe every node, and plans of providers count
// probes as calls. The board has the last sighting of each node for processes that join later, at most `mostNodes` per
// network.

import type { Sighting } from '../../chains/evm/pool/node-sharing.ts'
import type { Channel, Handlers } from './channel.ts'
import type { BlockRead } from './network-sharing.ts'

/** Knows which process probes the nodes of which network, and passes on what it sees. */
export type NetworkBoard = {
  /**
   * For what a process sends; it may send before it has started. Those that serve requests probe before the others: the
   * event loop of one that catches up with a chain is often late.
   */
  handlersOf(
    slot: number,
    process: Pick<Channel, 'ask' | 'post'>,
    options?: { isServing: boolean },
  ): Handlers
  /** A process has ended: another one probes in its place. */
  gone(slot: number): void
}

type Peer = { slot: number; isServing: boolean } & Pick<Channel, 'ask' | 'post'>

type Place = {
  /** Those that serve requests first, then in the order in which they joined; the first one probes. */
  peers: Peer[]
  /** The last of each kind, for those that join later. */
  last: Map<string, { answered?: Sighting; explored?: Sighting }>
}

const mostNodes = 100
const readTimeoutMs = 1_000

/** Makes the board of a supervisor. */
export function createNetworkBoard(): NetworkBoard {
  const places = new Map<string, Place>()

  const join = (peer: Peer, path: string): void => {
    const place: Place = places.get(path) ?? { peers: [], last: new Map() }
    places.set(path, place)
    const [before] = place.peers
    const others = place.peers.filter(({ slot }) => slot !== peer.slot)
    place.peers = [...others, peer].sort((a, b) => Number(b.isServing) - Number(a.isServing))
    const isLeader = place.peers[0]!.slot === peer.slot
    peer.post('lead', { path, isLeader })
    if (isLeader && before && before.slot !== peer.slot)
      before.post('lead', { path, isLeader: false })
    if (isLeader) return
    for (const [node, { answered, explored }] of place.last)
      for (const sighting of [explored, answered])
        if (sighting) peer.post('seen', { path, node, sighting })
  }

  const leave = (slot: number, path: string): void => {
    const place = places.get(path)
    if (!place) return
    const wasLeader = place.peers[0]?.slot === slot
    place.peers = place.peers.filter((one) => one.slot !== slot)
    const [next] = place.peers
    if (!next) places.delete(path)
    else if (wasLeader) next.post('lead', { path, isLeader: true })
  }

  const pass = (slot: number, given: { path: string; node: string; sighting: Sighting }): void => {
    const { path, node, sighting } = given
    const place = places.get(path)
    // One that was replaced may not have noticed yet.
    if (!place || place.peers[0]?.slot !== slot) return
    const known = place.last.get(node) ?? {}
    place.last.delete(node)
    if (sighting.kind === 'failed') delete known.answered
    else if (sighting.kind !== 'head') known[sighting.kind] = sighting
    place.last.set(node, known)
    if (place.last.size > mostNodes) place.last.delete(place.last.keys().next().value as string)
    for (const other of place.peers) if (other.slot !== slot) other.post('seen', given)
  }

  return {
    handlersOf: (slot, { ask, post }, { isServing } = { isServing: true }) => ({
      join: ({ path }: { path: string }) => join({ slot, ask, post, isServing }, path),
      leave: ({ path }: { path: string }) => leave(slot, path),
      seen: (given: Parameters<typeof pass>[1]) => pass(slot, given),
      read: (read: BlockRead) => {
        const leader = places.get(read.path)?.peers[0]
        if (!leader || leader.slot === slot) throw new Error('No other process has the network.')
        return leader.ask('read', read, readTimeoutMs)
      },
    }),
    gone: (slot) => {
      for (const path of [...places.keys()]) leave(slot, path)
    },
  }
}
