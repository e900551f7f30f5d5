import { styleText } from 'node:util'
import type { Config } from '../../app/config/schema.ts'
import type { Shell } from '../shell.ts'
import { wrapText } from '../table.ts'

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

// The columns of the mark and of the name of the check.
const indent = 18

/** One finding for a terminal of so many columns. */
export function findingText({ check, status, detail, fix }: Finding, columns: number): string {
  const wrapped = (text: string, from: number) =>
    wrapText(text, columns - from).join(`\n${' '.repeat(from)}`)
  const first = `${marks[status]} ${check.padEnd(indent - 3)} ${wrapped(detail, indent)}`
  return fix === undefined ? first : `${first}\n${' '.repeat(indent)}→ ${wrapped(fix, indent + 2)}`
}
