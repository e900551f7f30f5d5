/** An eighth more: nodes ask for a tenth, and the service refuses less. */
export const replacementPrice = (gas_price: string): string =>
  `${(BigInt(gas_price) * 9n + 7n) / 8n}`
