/** The least price with which another transaction of the same nonce is replaced: 10 % more. */
export const raisedPrice = (gas_price: bigint): bigint => {
  const raised = (gas_price * 11n + 9n) / 10n
  return raised > gas_price ? raised : gas_price + 1n
}
