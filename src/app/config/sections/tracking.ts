// What the background work on wallets does beside tracking itself.

import Type from 'typebox'

/** How balances are kept true. */
export const balancesSection = Type.Object(
  {
    reconcile_hours: Type.Integer({
      description:
        'Time within which every balance of variant C is compared with the chain once, evenly, at most 800 a second. It finds what changes without an event that names the address, such as the balances of tokens that rebase, and those that were never stored: of an address the coin and ten of the registered ERC-20 tokens each time.',
      default: 24,
      minimum: 1,
      maximum: 8_760,
    }),
  },
  { description: 'Balances of wallets.' },
)

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

/** Managed transactions of variant C. */
export const transactionsSection = Type.Object(
  {
    created_expiry_hours: Type.Integer({
      description:
        'Time after which a transaction without a signature is canceled, so that it does not keep its nonce. Three days cover approvals over a weekend; 0 means never.',
      default: 72,
      minimum: 0,
      maximum: 87_600,
    }),
  },
  { description: 'Managed transactions of variant C.' },
)
