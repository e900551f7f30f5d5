import type { Anvil } from '../../../devnet/anvil/anvil.ts'

const said = Buffer.from('rate limit exceeded: header not found, try again').toString('hex')
const length = said.length / 2

/** The code of tokens that fail whatever they are asked, each in its own way. */
export const hostileCodes = {
  /** Pushes until the stack is full. */
  stack: '0x5b5f600056',
  /** Runs until there is no gas left. */
  burner: '0x5b600056',
  /** Copies returned data that nothing has returned. */
  bounds: '0x60015f5f3e',
  /** Writes to the last byte of the memory. */
  memory: '0x5f5f1952',
  /** An operation that does not exist. */
  opcode: '0xfe',
  /** Reverts with the words of a node in trouble. */
  words: `0x60${length.toString(16).padStart(2, '0')}600a5f3960${length.toString(16).padStart(2, '0')}5ffd${said}`,
  /** Returns less than a number. */
  short: '0x60015ff3',
} as const

/** The ways in which a token can fail. */
export type HostileKind = keyof typeof hostileCodes

/** Puts a contract with such code at an address. */
export const placeHostile = async (
  anvil: Anvil,
  kind: HostileKind,
  address: string,
): Promise<void> => {
  await anvil.call('anvil_setCode', [address, hostileCodes[kind]])
}

/** The code of tokens that work, and change balances without a Transfer event. */
export const silentCodes = {
  /** Every balance is the number of the block, as of a token that rebases. */
  rebasing: '0x435f5260205ff3',
  /** A call with an account and an amount sets its balance, as deposits of WETH or a blacklist do. */
  ledger: '0x36604014601157600435545f5260205ff35b6020355f355500',
} as const

/** The data of the call that sets a balance in a ledger. */
export const setInLedger = (account: string, balance: bigint): string =>
  `0x${account.slice(2).padStart(64, '0')}${balance.toString(16).padStart(64, '0')}`

const transferTopic = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
// What the others do, at the place behind the choice below.
const loudBodies = {
  stack: '5b5f600756',
  burner: '5b600756',
  bounds: '60015f5f3e',
  memory: '5f5f1952',
  opcode: 'fe',
  short: '60015ff3',
} as const

/** The ways in which a token that makes Transfer events can fail. */
export const loudKinds = Object.keys(loudBodies) as (keyof typeof loudBodies)[]

/**
 * The code of a token that fails whatever it is asked, except that a call with an account and an amount
 * (`setInLedger`) makes a Transfer event from the caller to the account.
 */
export const loudCode = (kind: (typeof loudKinds)[number]): string => {
  const body = loudBodies[kind]
  const place = (7 + body.length / 2).toString(16).padStart(2, '0')
  return `0x3660401460${place}57${body}5b6020355f525f35337f${transferTopic}60205fa300`
}

/**
 * Calls an address some times with the same 256 KiB of memory, then passes its value on. Costs little,
 * but a tracer writes the memory down for every call: half a megabyte of text each.
 */
export const largeTrace = (to: string, calls: number): string =>
  [
    `0x60${calls.toString(16).padStart(2, '0')}`,
    '5b',
    '6000600062040000600060',
    '0061dead5af150',
    '6001900380600257',
    `60006000600060003473${to.slice(2)}5af15000`,
  ].join('')
