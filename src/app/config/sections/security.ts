// Secrets may be references (`env:`, `file:`, `exec:`), so that the configuration file itself can be kept in version
// control.

import Type from 'typebox'
import { secretText } from '../keys.ts'

/** Keys and windows of authentication. */
export const securitySection = Type.Object(
  {
    master_key: Type.Optional(
      secretText({
        description:
          'Key that seals API secrets in the database: 32 bytes as 64 hex digits or as base64. Every process needs the same one. Several keys are given one per line: the first seals, all of them open. `exec:/path/to/command argument` runs a command, without a shell and for at most 10 seconds, that prints the key, for KMS or Vault.',
        unset: 'a key file below `data_dir`, made at the first start with mode 0600',
        example: 'file:/run/secrets/portolan-master-key',
      }),
    ),
    master_key_refresh_seconds: Type.Integer({
      description:
        'How often the file or the command of `master_key` is read again, so that a rotation needs no restart. A key that is new opens at once; as the first one it seals after three times this time.',
      default: 30,
      minimum: 1,
      maximum: 3600,
    }),
    development_rules: Type.Optional(
      Type.Boolean({
        description:
          'Rules for trying out the service on one machine: an organization `demo` with an administrator, whose keys are written to `connection.json`; webhooks to `http://` and to loopback addresses; pages of this machine in `server.cors_origins`; and, with local chains, the routes below `/dev`. Never in production: `start` and `doctor` warn of it.',
        unset: 'only while local chains run and `server.host` and `server.base_url` are loopback',
        example: false,
      }),
    ),
    nonce_window_seconds: Type.Integer({
      description: 'How far the nonce of a request may be from the clock of the server.',
      default: 300,
      minimum: 1,
      maximum: 3600,
    }),
    // A look-up of an unknown key costs a database query, which callers without any credential could otherwise cause freely.
    auth_failures_burst: Type.Integer({
      description:
        'Wrong credentials that one address (of IPv6 one /64) may send at once. Beyond them credentials that are not in use already are answered with 429 `TOO_MANY_FAILURES` from that address, without a database query.',
      default: 200,
      minimum: 1,
      maximum: 1_000_000,
    }),
    auth_failures_per_second: Type.Integer({
      description: 'Wrong credentials that one address may send every second after that.',
      default: 5,
      minimum: 1,
      maximum: 1_000_000,
    }),
    auth_failures_delay_ms: Type.Integer({
      description:
        'How long the answer `TOO_MANY_FAILURES` is held back, so that an address that guesses keys cannot try them as fast as it can send. 0 answers at once.',
      default: 1_000,
      minimum: 0,
      maximum: 10_000,
    }),
  },
  { description: 'Keys and windows of authentication.' },
)
