import { setTimeout as delay } from 'node:timers/promises'
import { generatePrivateKey, privateKeyToAddress, sign } from 'viem/accounts'
import type { Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import type { Caller, Load, Outcome } from './cluster-load.ts'
import type { World } from './cluster-world.ts'

/** A managed transaction that was accepted, to an address that gets nothing else. */
export type Sent = { transaction_id: string; to: string; value: bigint }

/** The address that managed transactions are sent from, with what was sent. */
export type Sending = { from: string; sent: Sent[] }

const fortune = `0x${(10n ** 24n).toString(16)}`
const everyMs = 1_500

/** Creates, signs and sends managed transactions of one address. */
export async function send(
  { anvil }: World,
  call: Caller,
  { member, isOver, outcome }: Load & { member: Pair },
): Promise<Sending> {
  const privateKey = generatePrivateKey()
  const from = privateKeyToAddress(privateKey).toLowerCase()
  const sent: Sent[] = []
  await anvil.call('anvil_setBalance', [from, fortune])
  const wallet = await call(member, 'c/RegisterWallet', {
    ...{ name: 'sender', address: from, confirmation: 1 },
  })
  for (let value = 1n; wallet && !isOver(); value++) {
    const to = `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(20))).toString('hex')}`
    const { wallet_id } = wallet
    const made = await call(member, 'c/CreateTransaction', {
      ...{ wallet_id, from, to, value: `${value}` },
    })
    const transaction_id: string | undefined = made?.transaction?.transaction_id
    if (transaction_id === undefined) continue
    const asked = await call(member, 'c/GetTransactionMessageToSign', { transaction_id })
    const hash: `0x${string}` | undefined = asked?.transaction_message_to_sign
    if (hash === undefined) continue
    const signature = await sign({ hash, privateKey, to: 'hex' })
    await call(member, 'c/SubmitTransactionSignature', { transaction_id, signature })
    if (await call(member, 'c/SendTransaction', { transaction_id })) {
      sent.push({ transaction_id, to, value })
      outcome.counts.sent!++
    }
    await delay(everyMs)
  }
  return { from, sent }
}

/** Every accepted transaction is confirmed, and the chain has each of them once. */
export async function checkSent(
  { anvil }: World,
  call: Caller,
  { member, sending, outcome }: { member: Pair; sending: Sending; outcome: Outcome },
): Promise<void> {
  const { from, sent } = sending
  for (const { transaction_id, to, value } of sent) {
    let state = ''
    const isConfirmed = async () => {
      const found = await call(member, 'c/GetTransaction', { transaction_id })
      state = found?.transaction?.transaction_state
      return state === 'TRANSACTION_STATE_CONFIRMED'
    }
    await waitFor('the transaction is confirmed', isConfirmed, {
      ...{ timeoutMs: 180_000, everyMs: 500 },
    }).catch(() => outcome.wrong.push(`transaction ${transaction_id} is ${state}`))
    const balance = BigInt(await anvil.call<string>('eth_getBalance', [to, 'latest']))
    if (balance !== value) outcome.wrong.push(`${to} got ${balance} instead of ${value}`)
  }
  const count = Number(await anvil.call<string>('eth_getTransactionCount', [from, 'latest']))
  if (count !== sent.length)
    outcome.wrong.push(`${from} sent ${count} transactions instead of ${sent.length}`)
}
