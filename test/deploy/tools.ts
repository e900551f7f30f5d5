import { spawnSync } from 'node:child_process'
import type { TestContext } from 'vitest'

/** Runs a program of the system and returns how it ended with all that it wrote. */
export const runTool = (
  name: string,
  args: readonly string[],
  input = '',
): { status: number | null; text: string } => {
  const { status, stdout, stderr } = spawnSync(name, args, {
    input,
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, text: `${stdout}${stderr}` }
}

/** Skips the test where a program is not installed. */
export const needTool = (context: TestContext, name: string, versionOption: string): void => {
  if (spawnSync(name, [versionOption]).error) context.skip(`there is no ${name} here`)
}
