import Type from 'typebox'

/** The audit log. */
export const auditSection = Type.Object(
  {
    retention_days: Type.Integer({
      description:
        'How long events of the audit log are kept. The chain verifies from a signed anchor when older ones were removed.',
      default: 400,
      minimum: 1,
      maximum: 36_500,
    }),
  },
  { description: 'The audit log.' },
)
