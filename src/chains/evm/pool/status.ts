import { describeNode, type NodeStatus, type StatusContext } from '../../nodes/status.ts'
import type { Upstream } from './upstream.ts'

/** What `/status` shows of a node. */
export const statusOf = (upstream: Upstream, context: StatusContext): NodeStatus =>
  describeNode(
    {
      ...upstream,
      transport: upstream.transport.kind,
      chain_id: upstream.chainId,
      client_version: upstream.clientVersion,
      head: upstream.head?.number ?? null,
      drawback: upstream.isSyncing ? 'syncing' : '',
    },
    context,
  )
