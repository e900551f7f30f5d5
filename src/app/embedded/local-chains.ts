import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** The program that runs the local chains. Published packages and production installations do not have it. */
export const keeperProgram: string = fileURLToPath(
  new URL('../../../devnet/keeper.ts', import.meta.url),
)

const sentence =
  'Local chains are not installed; they come with the repository and its development packages (`npm ci`). `portolan init` connects nodes of your own.'

/** Says that the local chains are not installed; undefined when they are. */
export const missingLocalChains = (program = keeperProgram): string | undefined =>
  existsSync(program) && hasPackages(program) ? undefined : sentence

/** One package stands for all of `devnet`: npm installs all of them or none. */
function hasPackages(program: string): boolean {
  try {
    createRequire(program).resolve('@ton/sandbox')
    return true
  } catch {
    return false
  }
}
