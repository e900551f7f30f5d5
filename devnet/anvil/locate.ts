import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { emulatedPath, isEmulated } from './emulate.ts'
import { foundryVersion, type Tool } from './versions.ts'

const require = createRequire(import.meta.url)

const systems: Record<string, string> = { linux: 'linux', darwin: 'darwin', win32: 'win32' }
const processors: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }

/**
 * The path of a program of Foundry: what PORTOLAN_ANVIL or PORTOLAN_CAST names, the npm package for
 * this machine, the one on the PATH, or (Debian on arm64, for which npm has none) the amd64 package
 * behind an emulator.
 */
export async function locate(tool: Tool): Promise<string> {
  const named = process.env[`PORTOLAN_${tool.toUpperCase()}`]
  if (named) return named
  const found = packagedPath(tool) ?? pathOnPath(tool)
  if (found !== undefined) return found
  const reasons: string[] = []
  if (process.platform === 'linux' && process.arch === 'arm64') {
    try {
      return await emulatedPath(tool)
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error))
    }
  }
  throw new Error(
    [
      `There is no ${tool} here. Install Foundry ${foundryVersion} (https://getfoundry.sh),`,
      `or name the program in PORTOLAN_${tool.toUpperCase()}.`,
      ...reasons,
    ].join(' '),
  )
}

/** Whether the program is not on this machine yet, and its first start waits for a download. */
export function isToBeFetched(tool: Tool): boolean {
  if (process.platform !== 'linux' || process.arch !== 'arm64') return false
  if (process.env[`PORTOLAN_${tool.toUpperCase()}`] || isEmulated(tool)) return false
  return packagedPath(tool) === undefined && pathOnPath(tool) === undefined
}

function packagedPath(tool: Tool): string | undefined {
  const name = `@foundry-rs/${tool}-${systems[process.platform]}-${processors[process.arch]}`
  try {
    const folder = dirname(require.resolve(`${name}/package.json`))
    const file = join(folder, 'bin', process.platform === 'win32' ? `${tool}.exe` : tool)
    return existsSync(file) ? file : undefined
  } catch {
    return undefined
  }
}

function pathOnPath(tool: Tool): string | undefined {
  return spawnSync(tool, ['--version'], { timeout: 10_000 }).status === 0 ? tool : undefined
}
