// Builds the file system of the image by the steps of `deploy/docker/Dockerfile` in plain directories, and starts the
// service in it as the image's user, with a read-only root. It needs root (mounts and chroot). A real image is not built:
// the base is replaced by the libraries that its documentation lists. With a folder as its argument it only starts the
// service in a file system that was built before.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from '../helpers/free-port.ts'
import { embeddedBinaries } from '../helpers/postgres.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { readStages, runStage } from './dockerfile.ts'
import { root } from './installation.ts'

const user = 65_532
// The user without rights of every Debian: `initdb` refuses users without a name.
const databaseUser = 65_534
const largestMegabytes = 250
/** gcr.io/distroless/cc-debian12 on arm64 and amd64, uncompressed, rounded up. */
const baseMegabytes = 30

const folder = mkdtempSync(join(tmpdir(), 'portolan-image-'))
chmodSync(folder, 0o755)
const stages = readStages(readFileSync(join(root, 'deploy/docker/Dockerfile'), 'utf8'))
const node = join(root, 'node_modules/node/bin/node')
const path = `${dirname(node)}:/usr/local/bin:/usr/bin:/bin`
let image = process.argv[2] ?? ''
try {
  if (image === '') build()
  addBase()
  await startAndCall()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function build(): void {
  for (const stage of stages)
    image = runStage(stage, { context: root, roots: folder, path, log: console.log })
  const added = Number.parseInt(execFileSync('du', ['-sm', image], { encoding: 'utf8' }), 10)
  const megabytes = added + baseMegabytes
  console.log(`image: ${megabytes} MB, of which the base ${baseMegabytes} MB`)
  if (megabytes >= largestMegabytes) throw new Error(`the image has ${largestMegabytes} MB or more`)
}

/** What the base has: the C and C++ libraries, users, certificates. */
function addBase(): void {
  const libraries = execFileSync('ldd', [node], { encoding: 'utf8' })
    .split('\n')
    .flatMap((line) => /(\/\S+) \(/.exec(line)?.[1] ?? [])
    // The one that the image brings itself.
    .filter((file) => !file.includes('libatomic'))
  for (const file of libraries) {
    mkdirSync(dirname(join(image, file)), { recursive: true })
    copyFileSync(realpathSync(file), join(image, file))
  }
  for (const directory of ['tmp', 'proc', 'dev', 'etc'])
    mkdirSync(join(image, directory), { recursive: true })
  writeFileSync(
    join(image, 'etc/passwd'),
    `nonroot:x:${user}:${user}::/home/nonroot:/sbin/nologin\n`,
  )
  writeFileSync(join(image, 'etc/hosts'), '127.0.0.1 localhost\n')
}

async function startAndCall(): Promise<void> {
  await using database = await startDatabase()
  const data = join(folder, 'volume')
  mkdirSync(data)
  chownSync(data, user, user)
  const port = await freePort()
  const base_url = `http://127.0.0.1:${port}`
  const started = performance.now()
  const script = [
    'mount --bind "$IMAGE" "$IMAGE"',
    'mount --bind "$VOLUME" "$IMAGE/var/lib/portolan"',
    'mount -t tmpfs tmpfs "$IMAGE/tmp"',
    'mount -t proc proc "$IMAGE/proc"',
    'mount --rbind /dev "$IMAGE/dev"',
    'mount -o remount,ro,bind "$IMAGE"',
    `exec env -i PATH=/usr/local/bin NODE_ENV=production PORTOLAN_DATA_DIR=/var/lib/portolan XDG_CACHE_HOME=/tmp/cache PORTOLAN_PORT=${port} PORTOLAN_SERVER__ADMIN_LISTEN=127.0.0.1:0 PORTOLAN_SECURITY__MASTER_KEY=${'0'.repeat(64)} DATABASE_URL=${database.url} /usr/sbin/chroot --userspec=${user}:${user} "$IMAGE" /usr/local/bin/node /opt/portolan/bin/portolan.js start`,
  ]
  const service = spawn('unshare', ['--mount', '--pid', '--fork', 'sh', '-ec', script.join('\n')], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', IMAGE: image, VOLUME: data },
    stdio: 'inherit',
  })
  const ended = once(service, 'exit')
  try {
    await waitFor('the service is ready', async () => {
      if (service.exitCode !== null) throw new Error(`the service ended with ${service.exitCode}`)
      return await fetch(`${base_url}/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    })
    console.log(`ready after ${((performance.now() - started) / 1000).toFixed(1)} s`)
    const page = await fetch(base_url, { headers: { accept: 'text/html' } })
    if (!(await page.text()).includes('<script')) throw new Error('the console is missing')
    const { version } = (await (await fetch(`${base_url}/status`)).json()) as { version: string }
    console.log(`serves ${version} as user ${user} with a read-only root`)
  } finally {
    // The service itself: that of `unshare` would not reach it after the change of the user.
    const [child] = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8').split(
      ' ',
    )
    if (child) process.kill(Number(child), 'SIGTERM')
    await ended
  }
}

/** A PostgreSQL on a port: the image has none. */
async function startDatabase(): Promise<AsyncDisposable & { url: string }> {
  const binaries = await embeddedBinaries()
  const data = join(folder, 'database')
  mkdirSync(data)
  chownSync(data, databaseUser, databaseUser)
  const as = { uid: databaseUser, gid: databaseUser, cwd: '/', stdio: 'ignore' } as const
  execFileSync(join(binaries, 'initdb'), ['-D', data, '-A', 'trust', '-U', 'portolan', '-N'], as)
  const port = await freePort()
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off']
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', data, '-p', `${port}`, ...settings.flatMap((setting) => ['-c', setting])],
    as,
  )
  return {
    url: `postgres://portolan@127.0.0.1:${port}/postgres`,
    [Symbol.asyncDispose]: async () => {
      server.kill('SIGQUIT')
      await once(server, 'exit')
    },
  }
}
