// The numbers that the contract states in schemas and texts and the code enforces. Each has this one home.

/** Items in a page of a list when the request names no size (spec 8). */
export const defaultPageSize = 10
/** The largest page that can be requested (spec 8). */
export const maxPageSize = 100

/** Addresses in one batch request (spec 8). */
export const maxBatchAddresses = 1_000
/** Addresses of a wallet in its record; ListAddresses lists all. */
export const maxListedAddresses = 1_000
/** Addresses in one answer of ListWallets, divided among its wallets. */
export const maxAddressesPerAnswer = 10_000
/** Tokens that an organization tracks for whole wallets. */
export const maxTokenRules = 200

/** Credentials of an organization: a bound on the list, and on what one tenant can store. */
export const maxCredentials = 1_000
/** How long a rotated credential keeps working by default, and at most. */
export const rotationOverlap = { defaultSeconds: 24 * 3_600, maxSeconds: 7 * 86_400 } as const
/** How long the previous signing secret of a webhook still signs after a rotation. */
export const secretOverlapHours = 24
/** Failed notifications of a webhook are counted so far: above it only that there are many matters. */
export const countedFailures = 1_000

/** Sinks of an organization on a network: each has its own connection to a broker. */
export const maxSinks = 10

/** Open transactions of one address in an organization: each new one reads all of them. */
export const maxOpenTransactions = 1_000

/** Transactions in one call of ListTransactions of Q (spec 8). */
export const maxTransactionHashes = 100
/** How long a transaction that left the pool can still be read. */
export const pendingReadableHours = 24
/** How long a filter lives without a poll. */
export const filterIdleMinutes = 5

/** Idempotency keys of an organization that are kept at a time. */
export const maxIdempotencyKeys = 100_000
