import type { AssetKey } from '../../contract/records/assets.ts'
import type { Parsed } from '../chain.ts'
import { parsed, refused } from '../hex.ts'

/** The pallets whose assets are tokens of variant P, with the byte by which their tokens are stored. */
const pallets = { Assets: 0, ForeignAssets: 1 } as const

/** A pallet of tokens. */
export type TokenPallet = keyof typeof pallets

/** Whether a pallet holds tokens. */
export const isTokenPallet = (name: string): name is TokenPallet => Object.hasOwn(pallets, name)

/** A token: its pallet, and its id as SCALE has it. */
export type Token = { pallet: TokenPallet; id: Buffer }

const maxId = 2n ** 32n - 1n
const number = /^(?:0|[1-9][0-9]{0,9})$/
const location = /^0x((?:[0-9a-f]{2}){2,240})$/i

/**
 * Reads a token: a number is an asset of the pallet `Assets` (1984 is USDT on Polkadot), hex is the SCALE form of
 * the location of an asset of `ForeignAssets`.
 */
export const parseToken = (text: string): Parsed => {
  const foreign = location.exec(text)?.[1]
  if (foreign)
    return parsed(tokenBytes({ pallet: 'ForeignAssets', id: Buffer.from(foreign, 'hex') }))
  if (!number.test(text) || BigInt(text) > maxId)
    return refused(
      'Must be the number of an asset such as 1984, or the location of a foreign asset as SCALE in hex.',
    )
  const id = Buffer.alloc(4)
  id.writeUInt32LE(Number(text))
  return parsed(tokenBytes({ pallet: 'Assets', id }))
}

/** The bytes by which a token is stored. */
export const tokenBytes = ({ pallet, id }: Token): Buffer =>
  Buffer.concat([Buffer.of(pallets[pallet]), id])

/** The token of an asset; undefined for the native coin. */
export const tokenOf = ({
  contract_address,
}: Pick<AssetKey, 'contract_address'>): Token | undefined =>
  contract_address.length === 0
    ? undefined
    : {
        pallet: contract_address[0] === pallets.Assets ? 'Assets' : 'ForeignAssets',
        id: contract_address.subarray(1),
      }

/** The text of a token; empty for the native coin. */
export const formatToken = (contract_address: Uint8Array): string => {
  const token = tokenOf({ contract_address: Buffer.from(contract_address) })
  if (!token) return ''
  return token.pallet === 'Assets'
    ? token.id.readUInt32LE(0).toString()
    : `0x${token.id.toString('hex')}`
}
