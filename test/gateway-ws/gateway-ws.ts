import type { Overrides } from '../../src/app/config/schema.ts'
import {
  createWorld,
  type World,
  type WorldBlock,
  type WorldLog,
} from '../../src/gateway/testing/feed-world.ts'
import { startTestGateway, type TestGateway } from '../gateway/gateway.ts'
import { connect, type TestClient } from './client.ts'
import { type NodeServer, serveNode } from './world-node.ts'

/** A service on a scripted chain. */
export type TestStreams = {
  gateway: TestGateway
  world: World
  nodes: NodeServer[]
  url(key?: string): string
  open(key?: string): Promise<TestClient>
  /** Mines blocks with these logs on top of another and returns the last. */
  branch(from: WorldBlock, logs: WorldLog[][]): WorldBlock
}

/** A log that tests identify by its address. */
export const testLog = (value: number): WorldLog => ({
  address: `0x${value.toString(16).padStart(40, '0')}`,
  topics: [`0x${value.toString(16).padStart(64, '0')}`],
})

/** Starts the service on nodes of a scripted chain, by WebSocket by default. */
export async function startStreams({
  nodes: count = 1,
  transport = 'ws' as 'ws' | 'http',
  forgets = false,
  config = {} as Overrides,
} = {}): Promise<TestStreams> {
  const world = createWorld({ nodes: count, forgets })
  const nodes = await Promise.all(world.nodes.map((node) => serveNode(world, node)))
  const first = world.mine(world.mine(world.genesis))
  for (const node of nodes) node.show(first)
  const gateway = await startTestGateway(
    nodes.map(({ url, wsUrl }) => (transport === 'ws' ? wsUrl : url)),
    config,
  )
  const url = (key = gateway.tenant.member.api_key) =>
    `${gateway.app.ws_url}/c/mainnet/v1/ws/${key}`
  return {
    gateway,
    world,
    nodes,
    url,
    open: (key) => connect(url(key)),
    branch: (from, logs) => logs.reduce((parent, own) => world.mine(parent, own), from),
  }
}
