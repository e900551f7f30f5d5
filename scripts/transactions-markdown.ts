import { transactionTransitions } from '../src/contract/records/states.ts'

const short = (state: string) => state.replace('TRANSACTION_STATE_', '')

const arrows = transactionTransitions.flatMap(({ from, on, to }) =>
  (from?.map(short) ?? ['[*]']).map((state) => `  ${state} --> ${short(to)}: ${on}`),
)
const rows = transactionTransitions.map(
  ({ from, on, when, to }) =>
    `| ${from?.map(short).join(', ') ?? '-'} | ${on} | ${when} | ${short(to)} |`,
)

/** The page on managed transactions; its diagram and its table are those of the contract. */
export function transactionsMarkdown(): string {
  return `# Managed transactions

Variant C makes transactions, brings them onto the chain and follows them. It never signs: the keys stay with you. (This page
is written by \`npm run generate\`; its diagram and its table of states come from \`src/contract/records/states.ts\`.)

The way of one transaction:

1. \`CreateTransaction\` or \`CreateTokenTransaction\` fills in what you leave out and freezes nonce, gas, gas_price and chain id.
2. \`GetTransactionMessageToSign\` gives the 32 bytes to sign.
3. \`SubmitTransactionSignature\` checks that the signature is the sender's; bytes and \`transaction_hash\` are fixed.
4. \`SendTransaction\` hands the bytes to every node of the chain.
5. The state follows the blocks until the wallet's \`confirmation\` is reached. Webhooks report every change of state.

\`examples/send-erc20.ts\` does all of it.

## Creating

| Field | When you leave it out |
|---|---|
| \`gas\` | the node's estimate. Where that fails nothing is created: 400 \`TRANSACTION_WOULD_FAIL\` with the decoded reason of the contract |
| \`gas_price\` | the node's price; for a replacement at least 10 % more than the other one's |
| \`nonce\` | the lowest nonce from the node's pending count on that no other transaction of the address holds |
| \`data\` | empty |
| \`transaction_id\` | a UUID |

- \`from\` must be an address of the wallet. Transactions are legacy ones of EIP-155: good for one chain only.
- \`transaction_id\` is the idempotency key. The same id with the same content returns the stored transaction, whatever became
  of it; with another content it is 409. Give one, and repeating a call that failed half-way never pays twice.
- Token transactions encode \`transfer\` (ERC-20) and \`safeTransferFrom\` (ERC-721); the record shows the contract as \`to\` and the
  encoded call as \`data\`. Without a \`gas\` of your own the token's books are looked at as well: too little balance, an item of
  another owner, an address without a token are refused with a reason.

Every new transaction is checked against the chain before anything is stored. Refused, with the field named, is what no node
would take or what is certainly a mistake; a transaction that cannot be sent would keep its nonce, and later ones would wait:

| Check | Answer |
|---|---|
| \`gas\` below 21,000 and the cost of \`data\` (16 for a byte, 4 for a zero byte), or above the gas limit of a block | 400 \`INVALID_REQUEST\`, \`gas\` |
| \`gas_price\` more than 100 times the price of the nodes, when the fee could also exceed 10^18 | 400 \`INVALID_REQUEST\`, \`gas_price\` |
| \`nonce\` below the count of the address | 400 \`INVALID_REQUEST\`, \`nonce\` |
| the address has less than \`value\` and \`gas\` × \`gas_price\` | 409 \`INSUFFICIENT_FUNDS\`, \`from\`; fund the address and repeat the request |
| 1,000 transactions of the address are open | 409 \`TOO_MANY_OPEN_TRANSACTIONS\` |

What may be meant is created, with a sentence in \`warnings\`: a \`gas_price\` below the base fee, an address that cannot pay for
all its open transactions together, a \`nonce\` above one that no transaction has.

## Nonces

The nonce is chosen out of the rows and the chain, alone at the address; there is no counter that could drift. A transaction
holds its nonce from its creation until it is canceled or decided. Two organizations may have the same address. What another
organization has created holds nothing; what it has signed holds its nonce for those that have shown a signature of the same
key themselves. An organization without the key learns nothing of the nonces and prices of the others.

A transaction that is not signed within 72 hours (\`transactions.created_expiry_hours\`; 0 means never) is canceled by itself,
and \`last_error\` names the reason.

A canceled transaction frees its nonce, and **the next one that is created without a nonce takes it**. Until then later
transactions of the address wait in the pools of the nodes: chains execute nonces in order. They are shown as \`SENT\`, after 10
minutes with \`stuck\`, and continue by themselves once the hole is filled. So cancel from the highest nonce down, or create
something for the free one: \`CreateTransaction\` from the address to itself with value 0 will do.

While a transaction waits, \`last_error\` names the missing nonce and the transaction that holds it: one that was forgotten in
CREATED, one that the nodes refused (with their words), or none. \`ListTransactions\` with \`transaction_state\`
\`TRANSACTION_STATE_CREATED\` or \`TRANSACTION_STATE_SIGNED\` lists what was never sent.

An explicit nonce that another live transaction holds is a replacement. It needs a \`gas_price\` at least 10 % higher, else 409
\`REPLACEMENT_UNDERPRICED\`. A nonce that the chain has used already is refused.

## Signing

The message is the hash itself, so it is signed as it is: not as a "personal message" (EIP-191), and not hashed again. Any of
these forms is taken, with or without \`0x\`:

- 65 bytes: r, s, v, with v 0 or 1, 27 or 28, or that of EIP-155 (which may take more bytes)
- 64 bytes: the compact form of EIP-2098

\`\`\`ts
import { privateKeyToAccount } from 'viem/accounts'
const signature = await privateKeyToAccount(key).sign({ hash: transaction_message_to_sign })
\`\`\`

\`\`\`ts
import { SigningKey } from 'ethers'
const signature = new SigningKey(key).sign(transaction_message_to_sign).serialized
\`\`\`

\`\`\`sh
cast wallet sign --no-hash "$transaction_message_to_sign" --private-key "$KEY"
\`\`\`

An HSM or a KMS gives r and s; v is found by trying 0 and 1 (a wrong one is refused), and s must be in the lower half. A
signature of another key, of another chain id, with a high s, or malformed is 400 and says which of these it is. As long as
the transaction was not sent, another signature takes the place of the first; its hash changes with it.

## States

All of them have the prefix \`TRANSACTION_STATE_\`.

\`\`\`mermaid
stateDiagram-v2
${arrows.join('\n')}
\`\`\`

| From | Event | When | To |
|---|---|---|---|
${rows.join('\n')}

- **CREATED, SIGNED** nothing has left the service. Only here can a transaction be canceled, and its signature is erased then.
- **SENDING** the bytes are written ahead and handed over, and it is not known yet what came of it: a time-out, a 502, a crash.
  The sender hands over the same bytes again until it knows. \`last_error\` says what the nodes said last.
- **SENT** a node has it. It is sent again every 30 seconds as long as no block has it, because nodes forget. A transaction that
  was sent is never given up while its nonce is free: \`stuck\` only says that it takes long, and \`last_error\` why: a missing
  nonce and its holder, a price below that of the nodes, or nothing but time.
- **MINED** it is in a block that lacks confirmations. **CONFIRMED** succeeded, **REVERTED** failed on the chain; nonce and fee
  are spent in both.
- **REPLACED** another transaction with the nonce has the confirmations; \`replaced_by\` is its hash. This one can no more happen.
- A reorganization that takes the deciding block away brings a transaction back to SENT, from wherever it was, and it is sent
  again at once. With few confirmations that includes CONFIRMED: choose a \`confirmation\` that suits the sum.

### What nodes may answer

| Answer | State |
|---|---|
| taken, or already known | SENT |
| every node that got it refuses it: funds, intrinsic gas, underpriced, chain id, size | SIGNED, with 409 \`TRANSACTION_REFUSED\` and the reason |
| one refuses and another gives no answer, or an earlier attempt got none | stays SENDING: a node may hold it |
| nonce too low | looked up: MINED if it is this one that used the nonce, else REPLACED once that one is confirmed |
| a full pool, an unknown error text, a time-out, 5xx | stays SENDING and is sent again |

### Repeating

Every operation may be repeated. The same signature again, \`SendTransaction\` of what is on its way or done, \`CancelTransaction\` of
what is canceled succeed and change nothing. Anything that the state forbids is 409 \`TRANSACTION_STATE_INVALID\`.

## Canceling what was sent

\`CancelTransaction\` then is 409 \`TRANSACTION_ALREADY_BROADCAST\`, with the recipe: create a transaction with the same \`from\` and
\`nonce\`, \`to\` equal to \`from\`, value 0 and a price at least 10 % higher, sign it and send it. Both are followed; one ends as
CONFIRMED, the other as REPLACED. Which one is decided by the chain, not by us.

## Webhooks

A change of state, the creation included, is a notification of the type \`NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED\` with
\`data.transaction\`, the record as it was then. It waits for no confirmations: what the state says has happened. It is queued in the
same database transaction as the change, so none is missing and none is reported that did not happen.

## Many processes, crashes

The attempt is stored durably before the first byte is sent. Wherever the process dies, the same bytes are sent again, never others and never
twice under two hashes. Any number of processes send and serve operations; each address is with one sender at a time (taken over within seconds).
\`/status\` shows how many transactions are open and stuck.
`
}
