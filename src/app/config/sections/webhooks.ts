import Type from 'typebox'
import { parseSubnet } from '../../../lib/net/ip.ts'
import type { Finding } from '../problem.ts'

/** How notifications are delivered, and where they may go. */
export const webhooksSection = Type.Object(
  {
    allow_http: Type.Optional(
      Type.Boolean({
        description: 'Whether endpoints may be plain `http://`; `https://` always is allowed.',
        unset: 'only while `security.development_rules` hold',
        example: false,
      }),
    ),
    // Endpoints are chosen by tenants, the network is the operator's: without this rule a webhook could reach metadata
    // services and internal hosts (SSRF). It is enforced at each connection, after the name is resolved.
    allowed_networks: Type.Optional(
      Type.Array(Type.String({ pattern: '^[0-9a-fA-F.:]{2,45}(?:/[0-9]{1,3})?$' }), {
        description:
          'Private networks that endpoints, and the addresses of token metadata, may be in. Without an entry here private, loopback, link-local and metadata addresses are never reached, whatever a name resolves to.',
        unset: 'none; the loopback addresses while `security.development_rules` hold',
        example: ['10.20.0.0/16', 'fd00:20::/32'],
      }),
    ),
    timeout_seconds: Type.Integer({
      description: 'How long an endpoint has to answer a delivery.',
      default: 15,
      minimum: 1,
      maximum: 120,
    }),
    concurrency: Type.Integer({
      description:
        'Deliveries at once to one webhook, from each process. One that fails gets one at a time.',
      default: 16,
      minimum: 1,
      maximum: 1_000,
    }),
    // Half for one organization, so that slow receivers of one tenant leave room for all others.
    in_flight_limit: Type.Integer({
      description: 'Concurrent deliveries of a process; one organization has at most half of them.',
      default: 2_000,
      minimum: 2,
      maximum: 100_000,
    }),
    history_retention_days: Type.Integer({
      description:
        'How long notifications and their attempts are kept after they were delivered or failed permanently. Notifications that are due or on hold are always kept.',
      default: 90,
      // Longer than all retries of a notification, and than the five days until a webhook is disabled.
      minimum: 7,
      maximum: 36_500,
    }),
  },
  { description: 'How notifications are delivered, and where they may go.' },
)

/** No pattern distinguishes every network from similar text. */
export const webhooksRules = ({
  allowed_networks = [],
}: Type.Static<typeof webhooksSection>): Finding[] =>
  allowed_networks.flatMap((network, index) =>
    parseSubnet(network)
      ? []
      : [
          {
            path: ['webhooks', 'allowed_networks', index],
            must: 'be a network such as `10.20.0.0/16`, or an address',
            value: network,
          },
        ],
  )
