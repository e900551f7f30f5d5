import Type from 'typebox'

/** How balances are kept true. */
export const balancesSection = Type.Object(
  {
    reconcile_hours: Type.Integer({
      description:
        'Time within which every balance of variant C is compared with the chain once, evenly, at most 800 a second. It finds what changes without an event that names the address, such as the balances of tokens that rebase.',
      default: 24,
      minimum: 1,
      maximum: 8_760,
    }),
  },
  { description: 'Balances of wallets.' },
)
