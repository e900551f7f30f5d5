// Sends an ERC-20 from an account whose key never leaves this script: the service makes the transaction and brings it
// onto the chain, the signature is made here. Run it beside `npm start`: npx node examples/send-erc20.ts
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, PortolanError } from '@portolan/client'
import { encodeFunctionData, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readConnection } from './connection.ts'

if (process.argv.length > 2) {
  console.error('Usage: send-erc20.ts, without arguments')
  process.exit(2)
}
const { base_url, member, chains } = readConnection()
const portolan = createClient({ base_url, ...member }).c
const coin: string = chains.c.contracts.erc20
const account = privateKeyToAccount(generatePrivateKey())
const from = account.address.toLowerCase()
const { wallet_id } = await portolan.RegisterWallet({
  name: 'Payments',
  address: from,
  confirmation: 1,
})

type Transaction = Awaited<ReturnType<typeof portolan.CreateTransaction>>['transaction']

/** Signs what the service made, sends it and waits until the chain has decided. */
async function signAndSend({ transaction_id }: Transaction): Promise<void> {
  const { transaction_message_to_sign } = await portolan.GetTransactionMessageToSign({
    transaction_id,
  })
  const hash = transaction_message_to_sign as `0x${string}`
  await portolan.SubmitTransactionSignature({
    transaction_id,
    signature: await account.sign({ hash }),
  })
  // Refused, as for want of funds, it stays signed and may be sent again.
  let { transaction } = await retry(() => portolan.SendTransaction({ transaction_id }))
  while (!/CONFIRMED|REVERTED|REPLACED/.test(transaction.transaction_state)) {
    await delay(200)
    transaction = (await portolan.GetTransaction({ transaction_id })).transaction
  }
  console.log(`${transaction.transaction_hash} is ${transaction.transaction_state}`)
}

// Coin for the gas. The local chains have a faucet for that.
await fetch(`${base_url}/dev/v1/faucet`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ chain: 'c', address: from }),
})

// Anyone may mint coins of the local token: a contract call like any other.
const data = encodeFunctionData({
  abi: parseAbi(['function mint(address to, uint256 value)']),
  functionName: 'mint',
  args: [account.address, 1_000_000n],
})
// Refused until the coin of the faucet has arrived.
const minting = await retry(() =>
  portolan.CreateTransaction({ wallet_id, from, to: coin, value: '0', data }),
)
await signAndSend(minting.transaction)

// Give an id of your own, and repeating the call after a failure never pays twice.
const { transaction } = await portolan.CreateTokenTransaction({
  wallet_id,
  contract_type: 'CONTRACT_TYPE_ERC20',
  from,
  to: '0x00000000000000000000000000000000000000aa',
  token_payload: { erc20: { contract_address: coin, value: '250000' } },
  transaction_id: `payout-${from}`,
})
await signAndSend(transaction)

/** Repeats what the service refuses for want of funds, or the nodes for now. */
async function retry<answer>(work: () => Promise<answer>, left = 40): Promise<answer> {
  try {
    return await work()
  } catch (error) {
    const reason = error instanceof PortolanError ? error.reason : ''
    const isRefused = reason === 'TRANSACTION_REFUSED' || reason === 'INSUFFICIENT_FUNDS'
    if (!isRefused || left === 0) throw error
    await delay(500)
    return await retry(work, left - 1)
  }
}
