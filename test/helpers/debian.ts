import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

const apt = (...args: string[]): Promise<boolean> =>
  run('apt-get', ['-o', 'DPkg::Lock::Timeout=300', '-y', '-q', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeout: 300_000,
    maxBuffer: 2 ** 26,
  }).then(
    () => true,
    () => false,
  )

/** Installs a package of Debian where that is possible: as root, with a mirror in reach. */
export const installPackage = async (name: string): Promise<void> => {
  if (process.getuid?.() !== 0) return
  const install = () => apt('install', '--no-install-recommends', name)
  if (!(await install()) && (await apt('update'))) await install()
}
