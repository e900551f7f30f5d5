import Type from 'typebox'
import { secretText } from '../keys.ts'

/** Keys and windows of authentication. */
export const securitySection = Type.Object(
  {
    master_key: Type.Optional(
      secretText({
        description:
          'Key that seals API secrets in the database: 32 bytes as 64 hex digits or as base64. Every process needs the same one.',
        unset: 'a key file below `data_dir`, made at the first start with mode 0600',
        example: 'file:/run/secrets/portolan-master-key',
      }),
    ),
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
  },
  { description: 'Keys and windows of authentication.' },
)
