// Builds the web console, so that the service can serve it. Run by `npm ci`; it never fails the installation: without
// the tools of the build (an installation for production) the service says how to build it.

import { spawnSync } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../console')
const page = join(folder, 'dist/index.html')
const config = join(folder, 'vite.config.ts')

const newestSource = (): number =>
  Math.max(
    // The documents of the project are a part of it.
    ...globSync(
      [
        ...['src/**/*', 'build/**/*', 'index.html', 'vite.config.ts', 'package.json'],
        ...['../docs/*.md', '../docs/decisions/*.md'],
      ],
      { cwd: folder },
    ).map((name) => statSync(join(folder, name)).mtimeMs),
  )

if (existsSync(config) && !(existsSync(page) && statSync(page).mtimeMs >= newestSource())) {
  console.log('Building the web console, some seconds …')
  const { status } = spawnSync('npm', ['run', 'build', '--silent'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    // The name of npm on Windows is a script.
    shell: process.platform === 'win32',
    timeout: 300_000,
  })
  console.log(
    status === 0
      ? 'Built: the console is at the root of the service.'
      : 'Not built; "npm run build --workspace console" tries again.',
  )
}
