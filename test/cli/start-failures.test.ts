import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cp, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { type FreshDatabase, freshDatabase } from '../helpers/database.ts'
import { databasePid, freshFolder, portolan, runCommand } from './portolan.ts'

const urlOf = ({ connection }: FreshDatabase): string =>
  `postgres://${connection.user}@localhost/${connection.database}?host=${connection.host}`

// Five commands, each with a database to open.
const slow = { timeout: 240_000 }

const keyOf = (digit: string): string => digit.repeat(64)

const fails = async (env: Record<string, string>, args: readonly string[] = []) => {
  const dataDir = join(await freshFolder(), 'data')
  const { code, stderr } = await portolan(['start', '--chains', 'none', ...args], { dataDir, env })
  expect(code).toBe(1)
  expect(stderr).not.toMatch(/^\s+at /m)
  return { dataDir, message: stderr.replaceAll(dataDir, '<data>') }
}

test('a port in use', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const { message, dataDir } = await fails({}, ['--port', String(port)])
  other.close()
  expect(message.replaceAll(String(port), '<port>')).toMatchInlineSnapshot(`
    "Another program is listening on 127.0.0.1:<port> already. Choose another port with --port or PORTOLAN_PORT.
    "
  `)
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('a port in use is detected before the local chains start', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const dataDir = join(await freshFolder(), 'data')
  const env = { PORTOLAN_LOGGING__LEVEL: 'debug' }
  const args = ['start', '--port', String(port)]
  const { code, stderr, stdout } = await portolan(args, { dataDir, env })
  other.close()
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `Another program is listening on 127.0.0.1:${port} already. Choose another port with --port or PORTOLAN_PORT.\n`,
  })
  expect(stdout).not.toContain('starting the local chains')
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('a port in use is detected before the database is opened', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const env = { DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/portolan' }
  const { message } = await fails(env, ['--port', String(port)])
  other.close()
  expect(message).toContain(`Another program is listening on 127.0.0.1:${port} already.`)
})

test('an older Node without the packages of `npm ci`', async () => {
  const root = join(import.meta.dirname, '../..')
  const folder = await freshFolder()
  await cp(join(root, 'bin'), join(folder, 'bin'), { recursive: true })
  await cp(join(root, 'package.json'), join(folder, 'package.json'))
  const older =
    'data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"18.20.8"}})'
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', older, join(folder, 'bin/portolan.js'), 'start'],
    { encoding: 'utf8', env: { PATH: process.env.PATH } },
  )
  expect({ status, stderr }).toMatchInlineSnapshot(`
    {
      "status": 1,
      "stderr": "Portolan needs Node 26 or newer; this is 18.20.8. Install it, or use the one that npm has: \`npx -p node@26 -p portolan portolan\`.
    ",
    }
  `)
  // With it, any Node hands over; npm runs the same file.
  const { stdout } = spawnSync(
    process.execPath,
    ['--import', older, join(root, 'bin/portolan.js'), '--version'],
    { encoding: 'utf8', env: { PATH: process.env.PATH } },
  )
  expect(stdout.trim()).toBe(manifest.version)
  expect(manifest.scripts.start).toBe('exec node bin/portolan.js start')
})

test('an unreachable database server', async () => {
  const { message } = await fails({ DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/portolan' })
  expect(message).toMatchInlineSnapshot(`
    "The database at 127.0.0.1:1 is unreachable (ECONNREFUSED). Check database.url or DATABASE_URL, and that the server is running.
    "
  `)
})

test('a database that does not exist on its server', async () => {
  const database = await freshDatabase()
  const url = urlOf(database).replace(database.connection.database, 'nowhere')
  const { message } = await fails({ DATABASE_URL: url })
  expect(message).toMatchInlineSnapshot(`
    "The database refuses: database "nowhere" does not exist.
    "
  `)
})

test('a database of a newer version that this one cannot use', async () => {
  const database = await freshDatabase()
  await sql`insert into schema_migration (name, timestamp) values ('9999-future', 'now')`.execute(
    database.db,
  )
  await sql`update schema_migration_range set oldest_version = '9998-expanded'`.execute(database.db)
  const { message } = await fails({ DATABASE_URL: urlOf(database) })
  expect(message).toMatch(
    /^The database is at schema version 9999-future, but this Portolan knows only up to \d{4}-[a-z-]+\. Start a Portolan at least as new as the one that used this database last\.\n$/,
  )
})

test('a database of a preview', async () => {
  const database = await freshDatabase()
  await sql`insert into schema_migration (name, timestamp) values ('0001-access', 'now')`.execute(
    database.db,
  )
  const { message } = await fails({ DATABASE_URL: urlOf(database) })
  expect(message).toMatch(
    /^The database was created by a preview of Portolan \(schema version \d{4}-[a-z-]+\), which cannot be upgraded\. Start with an empty database or a new data directory\. To keep a copy of the old data, run "portolan export" with the old version first\.\n$/,
  )
})

test('a master key other than that of the database', slow, async () => {
  const env = { DATABASE_URL: urlOf(await freshDatabase()) }
  const dataDir = join(await freshFolder(), 'data')
  const right = { ...env, PORTOLAN_SECURITY__MASTER_KEY: keyOf('a') }
  await runCommand(['organizations', 'create', 'acme'], { dataDir, env: right })
  expect((await runCommand(['keys', 'create', 'acme'], { dataDir, env: right })).code).toBe(0)

  const { message } = await fails({ ...env, PORTOLAN_SECURITY__MASTER_KEY: keyOf('b') })
  expect(message.replaceAll(/\b[0-9a-f]{8}\b/g, '<id>')).toMatchInlineSnapshot(`
    "A value was sealed with the master key <id>, but the given one is <id>. Start with the master key of this database.
    "
  `)
  // A command does not make a key of its own either.
  const elsewhere = join(await freshFolder(), 'data')
  const { code, stderr } = await runCommand(['keys', 'list', 'acme'], { dataDir: elsewhere, env })
  expect({ code, stderr: stderr.replaceAll(elsewhere, '<data>') }).toMatchInlineSnapshot(`
    {
      "code": 1,
      "stderr": "The master key file <data>/master.key does not exist.
    ",
    }
  `)
})

test('an invalid master key', async () => {
  const { message } = await fails({ PORTOLAN_SECURITY__MASTER_KEY: 'hunter2' })
  expect(message).toMatchInlineSnapshot(`
    "The given value is not a master key: it must be 32 bytes as 64 hex digits or as base64. Make one with: openssl rand -hex 32
    "
  `)
  expect(message).not.toContain('hunter2')
})

test('a configuration with mistakes', async () => {
  const folder = await freshFolder()
  const file = join(folder, 'portolan.yaml')
  await writeFile(file, 'server:\n  prot: 4000\nlogging:\n  level: loud\n')
  const { message } = await fails({ PORTOLAN_CONFIG: file })
  expect(message.replaceAll(basename(folder), '<folder>')).toMatchInlineSnapshot(`
    "The configuration has 2 problems:
    - Unknown key \`server.prot\` in <folder>/portolan.yaml line 2. Did you mean \`server.port\`?
    - \`logging.level\` in <folder>/portolan.yaml line 4 must be one of \`silent\`, \`fatal\`, \`error\`, \`warn\`, \`info\`, \`debug\`, \`trace\`; it is \`loud\`.
    "
  `)
})

test('a data directory that cannot be created', async () => {
  const file = join(await freshFolder(), 'file')
  await writeFile(file, '')
  const { code, stderr } = await portolan(['start', '--chains', 'none'], {
    dataDir: join(file, 'data'),
  })
  expect(code).toBe(1)
  expect(stderr.replaceAll(file, '<file>')).toMatchInlineSnapshot(`
    "<file>/data cannot be used (mkdir): a part of the path is not a folder.
    "
  `)
})

test('an emulator that cannot be fetched does not fail the installation', async () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, '../../devnet/anvil/fetch.ts')],
    { encoding: 'utf8', env: { HOME: await freshFolder(), PATH: '/nowhere' } },
  )
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const isNeeded = process.platform === 'linux' && process.arch === 'arm64'
  expect(stdout.includes('the first start tries again')).toBe(isNeeded)
})
