/** An answer that is a refusal. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** What a caller sent with a method. */
export type Params = Record<string, unknown>

/** The method of an API by its name. */
export type Methods = Record<string, { takes: readonly string[]; answer(params: Params): unknown }>

/** A whole number of a request. */
export function readNumber(params: Params, key: string): number {
  const value = params[key]
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !Number.isSafeInteger(number))
    throw new ApiError(422, `${key}: a whole number is expected`)
  return number
}

/** The same, where it may be left out. */
export const readOptionalNumber = (params: Params, key: string): number | undefined =>
  params[key] === undefined || params[key] === '' ? undefined : readNumber(params, key)

/** Texts of a request: one, or the same name several times. */
export const readTexts = (params: Params, key: string): string[] =>
  (Array.isArray(params[key]) ? params[key] : [params[key]]).map(String)

/** A text of a request. */
export function readText(params: Params, key: string): string {
  const value = params[key]
  if (typeof value !== 'string' || value === '')
    throw new ApiError(422, `${key}: a text is expected`)
  return value
}
