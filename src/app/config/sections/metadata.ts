import Type from 'typebox'

/** Where the descriptions of tokens come from. */
export const metadataSection = Type.Object(
  {
    ipfs_gateway: Type.Optional(
      Type.String({
        description:
          'Address that replaces `ipfs://` in the URIs of tokens. It must answer without a redirect.',
        unset: 'such descriptions are not fetched',
        example: 'https://ipfs.example.org/ipfs/',
        pattern: '^https?://\\S+/$',
        expects: 'an http or https address that ends with a slash',
      }),
    ),
  },
  { description: 'Descriptions of NFTs (variant C).' },
)
