import Type from 'typebox'
import { Timestamp } from '../fields.ts'
import { operation } from '../operation.ts'

/** The operation beside the event stream `GET /v1/{chain}/events`. */
export const events = {
  CreateStreamToken: operation({
    summary: 'Make a token that opens one event stream.',
    description:
      'For `EventSource` in browsers, which cannot set headers: `GET /v1/{chain}/events?token=…`. It opens one connection within 60 seconds, at the address where it was made, with the role and the restrictions of the credential. Made in the service `admin` it opens `/v1/events`, the stream of all chains. Programs sign the request for the stream like any other and need no token.',
    services: 'TSPCA',
    extension: true,
    request: {},
    response: {
      token: Type.String({ description: 'for the parameter `token`' }),
      expire_time: Timestamp,
    },
  }),
}
