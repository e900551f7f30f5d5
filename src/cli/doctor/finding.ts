import { styleText } from 'node:util'
import type { Config } from '../../app/config/schema.ts'
import type { Shell } from '../shell.ts'

/** What every check is given. */
export type DoctorContext = { shell: Shell; config: Config; dataDir: string }

/** What a check found: all is well, something to know, or a reason why the service cannot work. */
export type Finding = {
  check: string
  status: 'ok' | 'warning' | 'failure'
  detail: string
  /** What to do about it. */
  fix?: string
}

/** All is well. */
export const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail })

/** The service works, but this needs attention. */
export const warning = (check: string, detail: string, fix: string): Finding => ({
  check,
  status: 'warning',
  detail,
  fix,
})

/** The service cannot work like this. */
export const failure = (check: string, detail: string, fix: string): Finding => ({
  check,
  status: 'failure',
  detail,
  fix,
})

// Coloured when the module is loaded; `styleText` respects NO_COLOR and terminals without colours.
const marks = {
  ok: styleText('green', '✓'),
  warning: styleText('yellow', '!'),
  failure: styleText('red', '✗'),
}

/** One finding for a terminal. */
export function findingText({ check, status, detail, fix }: Finding): string {
  const first = `${marks[status]} ${check.padEnd(15)} ${detail}`
  return fix === undefined ? first : `${first}\n${' '.repeat(18)}→ ${fix}`
}
