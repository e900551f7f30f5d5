type RawJsonApi = { rawJSON(text: string): object }

/**
 * A JSON integer of any size. Up to 2^53 it is a number; beyond, a text that `JSON.stringify` writes as
 * it is: typed as the number that a reader of the answer gets, so that records keep their types.
 */
export function toInteger(value: bigint): number {
  const number = Number(value)
  if (Number.isSafeInteger(number)) return number
  // Not in the library types yet.
  return (JSON as unknown as RawJsonApi).rawJSON(value.toString()) as unknown as number
}
