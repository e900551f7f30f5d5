import { signatureOf } from './legacy-signature.ts'

/** A wallet of the browser (EIP-1193). */
type Provider = { request(call: { method: string; params?: unknown[] }): Promise<unknown> }

/** The wallet that the browser has; undefined where it has none. */
export const findProvider = (window: object): Provider | undefined =>
  'ethereum' in window ? (window.ethereum as Provider) : undefined

/** What a wallet signs. */
export type Signable = {
  from: string
  to: string
  value: string
  gas: string
  gas_price: string
  data: string
  nonce: string
}

const quantity = (decimal: string) => `0x${BigInt(decimal).toString(16)}`

/** Lets a wallet sign a transaction without sending it, and returns the signature. */
export async function signWithWallet(provider: Provider, transaction: Signable): Promise<string> {
  const accounts = (await provider.request({ method: 'eth_requestAccounts' })) as string[]
  if (!accounts.some((account) => account.toLowerCase() === transaction.from.toLowerCase()))
    throw new Error(`The wallet has not connected the account ${transaction.from}.`)
  const { from, to, data } = transaction
  const signed = await provider.request({
    method: 'eth_signTransaction',
    params: [
      {
        from,
        to,
        data: data || '0x',
        value: quantity(transaction.value),
        gas: quantity(transaction.gas),
        gasPrice: quantity(transaction.gas_price),
        nonce: quantity(transaction.nonce),
        type: '0x0',
      },
    ],
  })
  // Some return the raw bytes, others an object with them.
  return signatureOf(typeof signed === 'string' ? signed : String((signed as { raw?: string }).raw))
}
