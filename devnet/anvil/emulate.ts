import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { amd64Integrity, foundryVersion, type Tool } from './versions.ts'

const execute = promisify(execFile)

const cache = (): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'portolan')

/** Whether it was fetched before. */
export const isEmulated = (tool: Tool): boolean =>
  existsSync(join(cache(), 'amd64')) && existsSync(join(cache(), `${tool}-${foundryVersion}`, tool))

/** An executable that runs the amd64 program through an emulator; fetched once, then kept. */
export async function emulatedPath(tool: Tool): Promise<string> {
  const machine = join(cache(), 'amd64')
  if (!existsSync(machine)) await build(machine, fetchMachine)
  const folder = join(cache(), `${tool}-${foundryVersion}`)
  const wrapper = join(folder, tool)
  if (!existsSync(wrapper)) await build(folder, (into) => fetchTool(tool, machine, folder, into))
  return wrapper
}

/** Makes a folder somewhere else and moves it into place, so that it is there whole or not at all. */
async function build(folder: string, fill: (into: string) => Promise<void>): Promise<void> {
  await mkdir(cache(), { recursive: true })
  const into = await mkdtemp(`${folder}-new-`)
  try {
    await fill(into)
    await rename(into, folder).catch((error) => {
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}

async function fetchTool(tool: Tool, machine: string, folder: string, into: string): Promise<void> {
  const name = `@foundry-rs/${tool}-linux-amd64@${foundryVersion}`
  await run('npm', ['pack', name, '--silent', '--pack-destination', into])
  const archive = (await readdir(into)).find((file) => file.endsWith('.tgz'))
  if (archive === undefined) throw new Error(`npm did not deliver ${name}.`)
  const digest = createHash('sha512')
    .update(await readFile(join(into, archive)))
    .digest('base64')
  if (`sha512-${digest}` !== amd64Integrity[tool])
    throw new Error(`What npm delivered as ${name} is not what is known.`)
  await run('tar', ['-xzf', join(into, archive), '-C', into, '--strip-components=2'])
  await rm(join(into, archive))
  await rename(join(into, tool), join(into, `${tool}.amd64`))
  // The shell is replaced by the emulator: the process that is started is the one to signal.
  const command = `exec '${machine}/qemu-x86_64-static' -L '${machine}' '${folder}/${tool}.amd64' "$@"`
  await writeFile(join(into, tool), `#!/bin/sh\n${command}\n`, { mode: 0o755 })
}

/** The emulator and the C library of amd64, unpacked; the system itself is not touched. */
async function fetchMachine(into: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'portolan-amd64-'))
  try {
    await mkdir(join(work, 'lists', 'partial'), { recursive: true })
    await mkdir(join(work, 'archives', 'partial'), { recursive: true })
    await writeFile(join(work, 'apt.conf'), aptConfiguration(work))
    const env = { ...process.env, APT_CONFIG: join(work, 'apt.conf') }
    const apt = (...args: string[]) => run('apt-get', ['-q', ...args], { cwd: work, env })
    await apt('update')
    await apt('download', 'qemu-user-static:arm64', 'libc6:amd64', 'libgcc-s1:amd64')
    const packages = (await readdir(work)).filter((file) => file.endsWith('.deb'))
    for (const file of packages) await unpack(join(work, file), into)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`The emulator cannot be fetched with apt-get: ${reason}`)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

const aptConfiguration = (work: string): string =>
  [
    'APT::Architecture "arm64";',
    'APT::Architectures { "arm64"; "amd64"; };',
    'APT::Sandbox::User "";',
    `Dir::State "${work}";`,
    'Dir::State::status "/dev/null";',
    `Dir::State::lists "${work}/lists";`,
    `Dir::Cache "${work}";`,
    `Dir::Cache::archives "${work}/archives";`,
  ].join('\n')

async function unpack(file: string, into: string): Promise<void> {
  if (/qemu/.test(file)) {
    const contents = join(into, 'qemu')
    await run('dpkg', ['-x', file, contents])
    await rename(
      join(contents, 'usr', 'bin', 'qemu-x86_64-static'),
      join(into, 'qemu-x86_64-static'),
    )
    await rm(contents, { recursive: true })
    return
  }
  await run('dpkg', ['-x', file, into])
  const loader = join(into, 'lib64', 'ld-linux-x86-64.so.2')
  if (!/libc6/.test(file)) return
  // Absolute in the package, which would lead out of the folder.
  await rm(loader, { force: true })
  await symlink('../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2', loader)
}

async function run(
  command: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<void> {
  await execute(command, args, { ...options, timeout: 300_000, maxBuffer: 16 * 1024 * 1024 })
}
