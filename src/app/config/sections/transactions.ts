import Type from 'typebox'

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
