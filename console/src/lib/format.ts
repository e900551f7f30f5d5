/** Writes an amount of the smallest unit with its decimals, exactly: `1500000`, 6 → `1.5`. */
export function formatUnits(amount: string | bigint, decimals: number): string {
  const value = typeof amount === 'bigint' ? amount : toBigInt(amount)
  if (value === undefined) return String(amount)
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return `${sign}${groupDigits(whole)}${fraction ? `.${fraction}` : ''}`
}

/** Reads an amount as people write it into the smallest unit; undefined where it has more decimals or is no number. */
export function parseUnits(text: string, decimals: number): bigint | undefined {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(text.trim().replace(/[\s,_]/g, ''))
  const fraction = match?.[2]?.replace(/0+$/, '') ?? ''
  if (!match?.[1] || fraction.length > decimals) return undefined
  return BigInt(match[1] + fraction.padEnd(decimals, '0'))
}

/** The first significant digits of an amount, for narrow columns; the exact one belongs in the title. */
export function shortenUnits(text: string, digits = 6): string {
  const [whole = '', fraction = ''] = text.split('.')
  if (!fraction) return text
  // A small amount keeps its first digits that are not zero.
  const zeros = /^0*$/.test(whole) ? (/^0*/.exec(fraction)?.[0].length ?? 0) : 0
  const kept = fraction.slice(0, zeros + digits)
  return kept.length < fraction.length ? `${whole}.${kept}…` : text
}

/** Groups the digits of a whole number by thousands. */
export const groupDigits = (digits: string): string => digits.replace(/\B(?=(?:\d{3})+$)/g, ',')

/** A whole number of any size with grouped digits. */
export function formatCount(value: number | bigint | string | null | undefined): string {
  if (value === null || value === undefined) return '–'
  const text = String(value)
  return /^-?\d+$/.test(text) ? text.replace(/\d+/, groupDigits) : text
}

/** A measured value, for charts only: amounts never pass through a float. */
export function formatMeasure(value: number | null | undefined, unit = ''): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '–'
  const size = Math.abs(value)
  const text =
    size >= 1000
      ? groupDigits(String(Math.round(value)))
      : size >= 100
        ? value.toFixed(0)
        : size >= 10
          ? trimZeros(value.toFixed(1))
          : trimZeros(value.toFixed(2))
  return unit ? `${text} ${unit}` : text
}

const trimZeros = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)

/** A fraction from 0 to 1 in percent. */
export function formatPercent(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return `${trimZeros((value * 100).toFixed(value > 0.99 && value < 1 ? 2 : 1))} %`
}

/** The middle of a long identifier left out. */
export const shorten = (text: string, head = 8, tail = 6): string =>
  text.length <= head + tail + 3 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`

const steps: readonly [number, string][] = [
  [60, 's'],
  [3_600, 'min'],
  [86_400, 'h'],
  [86_400 * 45, 'd'],
]

/** How long ago, or ahead, in the largest unit that fits: `12 s ago`, `in 3 h`, or the day. */
export function formatAge(time: number, now: number): string {
  const seconds = Math.round((now - time) / 1000)
  const size = Math.abs(seconds)
  if (size < 2) return 'now'
  let divisor = 1
  for (const [limit, unit] of steps) {
    if (size < limit) {
      const count = Math.floor(size / divisor)
      return seconds >= 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`
    }
    divisor = limit
  }
  return new Date(time).toISOString().slice(0, 10)
}

/** The exact time in UTC, as the service writes it. */
export const formatTime = (time: number): string =>
  new Date(time).toISOString().replace('T', ' ').replace('.000Z', 'Z').replace('Z', ' UTC')

/** A length of time for people. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1000) return `${formatMeasure(ms)} ms`
  if (ms < 60_000) return `${formatMeasure(ms / 1000)} s`
  return `${formatMeasure(ms / 60_000)} min`
}

/** A time of the API in milliseconds: a time stamp, or Unix seconds; undefined where there is none. */
export function toTime(value: string | number | null | undefined): number | undefined {
  if (value === null || value === undefined || value === '') return undefined
  const time = typeof value === 'number' ? value * 1000 : Date.parse(value)
  return Number.isNaN(time) ? undefined : time
}

/** A constant of the API for people: `WEBHOOK_STATUS_ON_HOLD` without its prefix is `On hold`. */
export function formatConstant(value: string, prefix = ''): string {
  const words = value.slice(value.startsWith(prefix) ? prefix.length : 0).replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1).toLowerCase()
}

/** The text of JSON, indented; what is no JSON stays as it is. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** JSON with integers of any size. */
export const toJson = (value: unknown, indent = 2): string =>
  JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? `${item}` : item), indent) ?? ''

function toBigInt(text: string): bigint | undefined {
  return /^-?\d+$/.test(text) ? BigInt(text) : undefined
}
