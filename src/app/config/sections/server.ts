// What the service listens on and who may reach it. Defaults suit one machine: loopback only, so that a service that was
// started to be tried out is not reachable from a network.

import Type from 'typebox'
import { parseSubnet } from '../../../lib/net/ip.ts'
import { publicUrl } from '../keys.ts'
import type { Finding } from '../problem.ts'
import { serverRoles } from '../server-roles.ts'

/** The HTTP and WebSocket server. */
export const serverSection = Type.Object(
  {
    host: Type.String({
      description: 'Address to listen on. `0.0.0.0` or `::` listens on every interface.',
      default: '127.0.0.1',
      pattern: '^[^\\s/]+$',
      expects: 'a host name or an IP address',
    }),
    port: Type.Integer({
      description: 'Port to listen on; 0 takes any free port.',
      default: 4000,
      minimum: 0,
      maximum: 65_535,
    }),
    base_url: Type.Optional(
      publicUrl(['http', 'https'], {
        description:
          'Address under which clients reach the service, as written into documents; with `base_path` at its end.',
        unset: '`http://<host>:<port><base_path>`',
        example: 'https://portolan.example.org',
      }),
    ),
    base_path: Type.String({
      description:
        'Path below which all public routes are, such as `/portolan` behind a proxy that passes paths on unchanged: `/portolan/v1/…`, `/portolan/docs`, `/portolan/c/mainnet/v1/…`. Signatures cover the path as sent. `/health` and `/ready` also answer without it. Empty for the root.',
      default: '',
      example: '/portolan',
      pattern: '^(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){0,8}$',
      expects: 'a path such as `/portolan`, without `/` at its end',
    }),
    console: Type.Boolean({
      description:
        'Whether the web console is served at `/`. Without it `/` leads to the API reference.',
      default: true,
    }),
    workers: Type.Union([Type.Integer({ minimum: 1, maximum: 64 }), Type.Literal('auto')], {
      description:
        'How many processes serve requests. With 1 the service is always one process. With more, one process supervises the others: as many as named serve requests on the one port, and one more tracks, delivers and sends. `auto` begins with one process; when it uses more than half of a core for 5 seconds, the service continues in as many processes as there are cores, at most 8. Rate limits hold for all together. With local chains the service is always one process. See scale.md.',
      default: 'auto',
      example: 4,
      expects: 'a whole number from 1 to 64, or `auto`',
    }),
    reuse_port: Type.Boolean({
      description:
        'Whether several processes listen on the one port by themselves (`SO_REUSEPORT`, on Linux only). Without it the supervisor accepts connections and passes them on, and `auto` starts all processes at once.',
      default: true,
    }),
    roles: Type.Array(Type.Enum([...serverRoles]), {
      description:
        'What this process runs: `api` the operations and event streams, `gateway` the node gateway, `tracker` the tracking of blocks, balances and metadata, `courier` webhooks, `sender` transactions, `console` the web console. Processes on one database share the work, see scale.md. Every process answers the probes.',
      default: [...serverRoles],
      minItems: 1,
      example: ['api', 'gateway'],
    }),
    ws_url: Type.Optional(
      publicUrl(['ws', 'wss'], {
        description: 'Address under which clients reach the WebSocket gateway.',
        unset: '`base_url` with `ws` in place of `http`',
        example: 'wss://portolan.example.org',
      }),
    ),
    admin_listen: Type.Optional(
      Type.String({
        description:
          'Address and port of the routes for the operator: `/metrics`, `/status` with all details, `/reload`, and profiles below `/debug`. They need no credential, so only the operator and the monitoring may reach this address; requests must name it, or loopback, as their host. `off` closes them.',
        unset:
          'loopback and the port after `server.port`, so 4001 beside 4000; any free port when that one is taken or `server.port` is 0',
        example: '127.0.0.1:4001',
        pattern: '^(?:off|(?:\\[[0-9a-fA-F:]{2,45}\\]|[^\\s/:\\[\\]]{1,253}):[0-9]{1,5})$',
        expects: 'an address such as `127.0.0.1:4001` or `[::1]:4001`, or `off`',
      }),
    ),
    cors_origins: Type.Optional(
      Type.Array(Type.String({ pattern: '^(?:\\*|https?://[^\\s/*?#]+?(?::\\*)?)$' }), {
        description:
          'Origins whose pages may call the operations and the gateway from a browser, such as `https://app.example.org`. `*` in the place of the port means any port, and alone any origin. Every call still needs its signature or key.',
        unset:
          'none; pages on this machine (`localhost`, `127.0.0.1`) while `security.development_rules` hold',
        example: ['https://app.example.org'],
      }),
    ),
    trust_proxy: Type.Union(
      [
        Type.Boolean(),
        Type.Integer({ minimum: 0, maximum: 10 }),
        Type.Array(Type.String({ pattern: '^[0-9a-fA-F.:]{2,45}(?:/[0-9]{1,3})?$' })),
      ],
      {
        description:
          'Proxies that are trusted to name the client in `X-Forwarded-For`: how many are in a row before the service (`true` means one), or the networks they are in. The client is the last entry that no trusted proxy has. With a number the service must be reachable through these proxies only; anyone else could claim any address. `Forwarded` is not read.',
        default: false,
        example: ['10.0.0.0/8'],
        expects: '`true`, `false`, a whole number from 0 to 10, or a list of networks',
      },
    ),
    body_limit_bytes: Type.Integer({
      description: 'Largest request body, in bytes; a larger one is answered with 413.',
      default: 1_048_576,
      minimum: 1024,
      maximum: 1_073_741_824,
    }),
    body_bytes_limit: Type.Integer({
      description:
        'Bytes of request bodies that may be in memory at once; a body beyond them is answered with 503.',
      default: 536_870_912,
      minimum: 1_048_576,
      maximum: 1_099_511_627_776,
    }),
    body_bytes_per_address: Type.Integer({
      description:
        'Bytes of request bodies that one client address (of IPv6 one /64) may have in memory at once; a body beyond them is answered with 429. One body of the largest size always fits.',
      default: 134_217_728,
      minimum: 65_536,
      maximum: 1_099_511_627_776,
    }),
    connections_limit: Type.Integer({
      description: 'Connections that may be open at once; more are answered with 503 and closed.',
      default: 32_768,
      minimum: 1,
      maximum: 1_000_000,
    }),
    connections_per_address: Type.Integer({
      description:
        'Connections that one address (of IPv6 one /64) may have open at once; more are answered with 429 and closed. Proxies of `trust_proxy` may open any number; WebSockets through them are counted for the address of their client.',
      default: 4_096,
      minimum: 1,
      maximum: 1_000_000,
    }),
    streams_per_key: Type.Integer({
      description:
        'Event streams (`GET /v1/{chain}/events`) that one API key may have open in one process; more are answered with 429.',
      default: 20,
      minimum: 1,
      maximum: 100_000,
    }),
    streams_per_organization: Type.Integer({
      description: 'The same for all keys of an organization together.',
      default: 100,
      minimum: 1,
      maximum: 1_000_000,
    }),
    header_timeout_seconds: Type.Integer({
      description: 'Time that a client has to send the headers of a request.',
      default: 10,
      minimum: 1,
      maximum: 3600,
    }),
    request_timeout_seconds: Type.Integer({
      description: 'Time that a client has to send a whole request.',
      default: 30,
      minimum: 1,
      maximum: 3600,
    }),
    operation_timeout_seconds: Type.Integer({
      description: 'Time after which an operation is answered with 504, whatever it waits for.',
      default: 40,
      minimum: 1,
      maximum: 3600,
    }),
    keep_alive_timeout_seconds: Type.Integer({
      description:
        'Time that an idle connection stays open. Keep it above the idle timeout of a proxy in front.',
      default: 65,
      minimum: 1,
      maximum: 3600,
    }),
    drain_seconds: Type.Optional(
      Type.Integer({
        description:
          'Time after SIGTERM during which `/ready` answers 503 and requests are still served, each with `connection: close`, before the port is closed. Longer than a load balancer needs to notice; part of `shutdown_timeout_seconds`.',
        unset: '5; 0 while `security.development_rules` hold',
        example: 10,
        minimum: 0,
        maximum: 3600,
      }),
    ),
    shutdown_timeout_seconds: Type.Integer({
      description: 'Time that work in progress has to finish after SIGTERM, before it is aborted.',
      default: 25,
      minimum: 0,
      maximum: 3600,
    }),
  },
  { description: 'The HTTP and WebSocket server. A proxy in front of it handles TLS.' },
)

/** Rules between keys, and what no pattern can check. */
export const serverRules = ({
  trust_proxy,
  header_timeout_seconds,
  request_timeout_seconds,
}: Type.Static<typeof serverSection>): Finding[] => [
  // Node never waits for headers longer than for the request, so the reverse order is a mistake.
  ...(header_timeout_seconds > request_timeout_seconds
    ? [
        {
          path: ['server', 'header_timeout_seconds'],
          must: `be at most server.request_timeout_seconds, which is ${request_timeout_seconds}`,
          value: header_timeout_seconds,
        },
      ]
    : []),
  ...(Array.isArray(trust_proxy) ? trust_proxy : []).flatMap((network, index) =>
    parseSubnet(network)
      ? []
      : [
          {
            path: ['server', 'trust_proxy', index],
            must: 'be a network such as `10.0.0.0/8`, or an address',
            value: network,
          },
        ],
  ),
]
