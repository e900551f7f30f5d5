import { fromHex, isHex } from './bytes.ts'
import { RpcError } from './rpc.ts'

const refuse = (what: string): never => {
  throw new RpcError(-32_602, `Invalid params: ${what}`)
}

/** A parameter that must be a text. */
export const textParam = (value: unknown, name: string): string =>
  typeof value === 'string' ? value : refuse(`${name} must be a string`)

/** A parameter that must be hex. Clients also send nothing at all for no bytes. */
export const bytesParam = (value: unknown, name: string): Buffer => {
  const text = textParam(value, name)
  return text === '' || isHex(text) ? fromHex(text || '0x') : refuse(`${name} must be hex`)
}

/** A parameter that must be true or false. */
export const booleanParam = (value: unknown, name: string): boolean =>
  typeof value === 'boolean' ? value : refuse(`${name} must be a boolean`)

/** A parameter that must be a whole number. */
export const numberParam = (value: unknown, name: string): number =>
  Number.isSafeInteger(value) && Number(value) >= 0
    ? Number(value)
    : refuse(`${name} must be a whole number`)

/** A parameter that must be a list. */
export const listParam = (value: unknown, name: string): unknown[] =>
  Array.isArray(value) ? value : refuse(`${name} must be an array`)

/** A parameter that must be one of a few words. */
export const wordParam = <word extends string>(
  value: unknown,
  name: string,
  words: readonly word[],
): word =>
  words.find((one) => one === value) ?? refuse(`${name} must be one of ${words.join(', ')}`)
