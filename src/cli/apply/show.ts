import { styleText } from 'node:util'
import type { Shell } from '../shell.ts'
import type { Plan } from './plan-tools.ts'

const colours = { '+': 'green', '~': 'yellow', '-': 'red' } as const

/** A plan as a diff, one line per change and one per field. */
export function describePlan(
  { organizations, extras }: Plan,
  { stdout }: Pick<Shell, 'stdout'>,
): string {
  const lines = organizations
    .filter(({ steps }) => steps.length > 0)
    .flatMap(({ domain, steps }) => [
      domain,
      ...steps.flatMap(({ mark, subject, details }) => [
        styleText(colours[mark], `  ${mark} ${subject}`, { stream: stdout }),
        ...details.map((detail) => `      ${detail}`),
      ]),
    ])
  const marks = organizations.flatMap(({ steps }) => steps.map(({ mark }) => mark))
  const count = (mark: string) => marks.filter((one) => one === mark).length
  const sum =
    marks.length === 0
      ? 'Nothing to change: the installation is as the document says.'
      : `${count('+')} to create, ${count('~')} to change, ${count('-')} to remove.`
  const rest =
    extras.length === 0
      ? []
      : [
          `Not in the document, and left as they are (--prune removes them): ${extras.length}`,
          ...extras.slice(0, 20).map((extra) => `  ${extra}`),
          ...(extras.length > 20 ? [`  and ${extras.length - 20} more`] : []),
        ]
  return [...lines, sum, ...rest].join('\n')
}
