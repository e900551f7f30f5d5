import Type, { type TProperties } from 'typebox'
import { headerRecord, type OtherForm, secretUrl } from '../keys.ts'

// Shared by every family, so that the example and the documentation describe them once.
const commonKeys = {
  name: Type.Optional(
    Type.String({
      description: 'Name of the node in logs, metrics and `/status`.',
      unset: 'the host of the url',
      example: 'own-node',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
      expects: 'letters, digits, `.`, `_` and `-`, at most 63 characters',
    }),
  ),
  headers: headerRecord({
    description: 'Headers of every request to the node, such as its access token.',
    example: { authorization: 'env:NODE_AUTHORIZATION' },
  }),
  priority: Type.Integer({
    description: 'Nodes with the lowest number are asked first; the others when those fail.',
    default: 0,
    minimum: 0,
    maximum: 1000,
  }),
  // To name it saves the question, and covers nodes that keep only a part of the old state.
  archive: Type.Optional(
    Type.Boolean({
      description: 'Whether the node keeps the state of old blocks.',
      unset: 'found out by asking',
      example: true,
    }),
  ),
  // Paced before the request is sent. Without it the answer 429 and its Retry-After are the only bound.
  rate_limit_per_second: Type.Optional(
    Type.Integer({
      description: 'Requests per second that the node allows.',
      unset: 'no limit but the answers of the node',
      example: 25,
      minimum: 1,
      maximum: 1_000_000,
    }),
  ),
}

type ListNotes = {
  description: string
  unset?: string
  example?: { url: string }[]
  minItems?: number
  default?: []
}

/** A list of nodes that speak one of the schemes, with the keys that only this family has. */
export const upstreams = <keys extends TProperties = Record<never, never>>(
  schemes: readonly string[],
  example: string,
  ownKeys?: keys,
  about: ListNotes = { description: 'The nodes of the network.' },
  other?: OtherForm,
) =>
  Type.Array(
    Type.Object(
      {
        url: secretUrl(
          schemes,
          { description: 'Address of the node.', example, mask: 'path' },
          other,
        ),
        ...commonKeys,
        ...(ownKeys as keys),
      },
      { description: 'One node.' },
    ),
    { minItems: 1, ...about },
  )
