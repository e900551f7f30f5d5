import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import {
  databasePid,
  freshFolder,
  portolan,
  runCommand,
  type Service,
  startService,
} from './portolan.ts'

const dataDir = join(await freshFolder(), 'data')

const run = async (...args: string[]) => {
  const outcome = await runCommand(args, { dataDir })
  expect(outcome.stderr).not.toMatch(/^\s+at /m)
  return outcome
}

const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)

const signed = (pair: { api_key: string; api_secret: string }, base_url: string) =>
  runCommand(['call', 'admin', 'GetOrganizationByDomain', '{"domain":"acme"}'], {
    dataDir,
    env: {
      PORTOLAN_BASE_URL: base_url,
      PORTOLAN_API_KEY: pair.api_key,
      PORTOLAN_API_SECRET: pair.api_secret,
    },
  })

test('an operator starts without service, credential and database', async () => {
  const created = await run('organizations', 'create', 'acme', '--name', 'Acme Ltd')
  expect(created.code).toBe(0)
  expect(
    created.stdout.replaceAll(/[0-9a-f-]{36}/g, '<id>').replaceAll(/\d{4}-\S+Z/g, '<time>'),
  ).toMatchInlineSnapshot(`
    "organization_id  <id>
    name             Acme Ltd
    domain           acme
    create_time      <time>
    update_time      <time>
    status           enabled
    "
  `)
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('two commands at the same time do not disturb each other', async () => {
  const names = ['one', 'two', 'three']
  const outcomes = await Promise.all(
    names.map((name) => portolan(['organizations', 'create', name], { dataDir })),
  )
  expect(outcomes.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    names.map(() => ({ code: 0, stderr: '' })),
  )
  expect(await databasePid(dataDir)).toBeUndefined()
})

describe('beside a running service', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService(dataDir)
  })
  afterAll(async () => {
    await service.stop()
    expect(await databasePid(dataDir)).toBeUndefined()
  })

  test('top shows who calls most, once where there is no terminal', async () => {
    const pair = await json('keys', 'create', 'acme', '--name', 'busy', '--role', 'admin')
    for (let call = 0; call < 3; call++)
      expect((await signed(pair, service.connection.base_url)).code).toBe(0)
    const top = async () => (await run('top')).stdout
    await waitFor('the counts are stored', async () => (await top()).includes('busy'))
    const text = await top()
    expect(text).toMatch(/^-\s+3\s+0\s+0\s+acme$/m)
    expect(text).toMatch(/^-\s+3\s+0\s+0\s+busy\s+acme$/m)
    expect(text).toMatch(/^-\s+3\s+0\s+0\s+GetOrganizationByDomain\s+admin$/m)
    expect(text).toContain('NODE')
    expect(text).not.toContain('\u001b')
    expect((await json('top')).organizations).toContainEqual(
      expect.objectContaining({ domain: 'acme', calls: 3 }),
    )
  })

  test('failures are sentences with an exit code', async () => {
    expect(await run('organizations', 'create', 'acme')).toMatchInlineSnapshot(`
      {
        "code": 1,
        "stderr": "Another organization has this domain.
        domain: Another organization has this domain.
      ",
        "stdout": "",
      }
    `)
    expect(await run('organizations', 'create', 'No Domain')).toMatchInlineSnapshot(`
      {
        "code": 1,
        "stderr": "Not valid: domain.
        domain: Must be lower-case letters and digits, joined by single hyphens (^[a-z0-9]+(?:-[a-z0-9]+)*$).
      ",
        "stdout": "",
      }
    `)
    expect(await run('organizations', 'show', 'unknown')).toMatchInlineSnapshot(`
      {
        "code": 1,
        "stderr": "There is no organization with the domain "unknown".
      ",
        "stdout": "",
      }
    `)
    expect(await run('keys', 'delete', 'plk_nobody')).toMatchInlineSnapshot(`
      {
        "code": 1,
        "stderr": "Credential not found.
      ",
        "stdout": "",
      }
    `)
    expect(await run('limits', 'set', 'acme')).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "Give at least one of --per-second, --per-hour, --per-day and --per-month.
      ",
        "stdout": "",
      }
    `)
    expect(await run('limits', 'set', 'acme', '--per-second', 'many')).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "Option '--per-second <calls>' argument 'many' is invalid. A limit is a whole number, "unlimited" (-1) or "blocked" (0).
      ",
        "stdout": "",
      }
    `)
    expect(await run('limits', 'delete', 'acme')).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "Name the chain whose limit shall be deleted, or give --all.
      ",
        "stdout": "",
      }
    `)
    expect(await run('limits', 'get', 'acme', 'c')).toMatchInlineSnapshot(`
      {
        "code": 1,
        "stderr": "Rate limit not found.
      ",
        "stdout": "",
      }
    `)
    expect(await run('keys', 'create', 'acme', '--role', 'king')).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "Option '--role <role>' argument 'king' is invalid. A role is "admin", "owner", "member" or "reader".
      ",
        "stdout": "",
      }
    `)
  })

  test('a key works at once, and stops working at once', async () => {
    const created = await run('keys', 'create', 'acme', '--name', 'backend', '--json')
    expect(created.stderr).toBe(
      'Store the secret now: it is encrypted in the database and not shown again.\n',
    )
    const pair = JSON.parse(created.stdout)
    expect(pair).toMatchObject({ role: 'ROLE_MEMBER', name: 'backend' })
    const { base_url } = service.connection
    expect((await signed(pair, base_url)).stdout).toContain('"name": "Acme Ltd"')

    const listed = await run('keys', 'list', 'acme')
    expect(listed.stdout).toContain(pair.credential_id)
    expect(listed.stdout).not.toContain(pair.api_key)
    expect(listed.stdout).not.toContain(pair.api_secret)

    expect((await run('organizations', 'disable', 'acme')).stdout).toContain('disabled')
    expect((await signed(pair, base_url)).stderr).toContain('UNAUTHENTICATED (401)')
    expect((await run('organizations', 'enable', 'acme')).stdout).toContain('enabled')
    expect((await signed(pair, base_url)).code).toBe(0)

    expect((await run('keys', 'delete', pair.api_key)).code).toBe(0)
    expect((await signed(pair, base_url)).stderr).toContain('UNAUTHENTICATED (401)')
    const other = await json('keys', 'create', 'acme')
    expect((await run('keys', 'delete', other.credential_id)).code).toBe(0)
    expect((await signed(other, base_url)).stderr).toContain('UNAUTHENTICATED (401)')
  })

  test('the audit log of an organization has what commands do to its keys', async () => {
    const created = await json('keys', 'create', 'acme', '--name', 'audited')
    const { credential_id, organization_id } = created
    expect((await run('keys', 'update', credential_id, '--name', 'other')).code).toBe(0)
    const next = await json('keys', 'rotate', credential_id, '--overlap', '0s')
    expect((await run('keys', 'revoke', credential_id)).code).toBe(0)
    expect((await run('keys', 'revoke', next.api_key)).code).toBe(0)
    const ids = [credential_id, next.credential_id]
    const events = async () =>
      (await run('audit', 'export')).stdout
        .split('\n')
        .flatMap((line) => (line.includes('"event_id"') ? [JSON.parse(line)] : []))
        .map((event) => ({ ...event, target: JSON.parse(event.detail ?? '{}').target }))
        .filter(({ target }) => ids.includes(target?.credential_id))
    await waitFor('the events are chained', async () => (await events()).length === 5)
    const all = await events()
    expect(all.map((event) => [event.operation, event.organization_id])).toEqual(
      [
        'CreateCredential',
        'UpdateCredential',
        'RotateCredential',
        'keys revoke',
        'keys revoke',
      ].map((name) => [name, organization_id]),
    )
  })

  test('a limit holds at once; what is not given stays as it applied', async () => {
    const pair = await json('keys', 'create', 'acme')
    await run('limits', 'set', 'acme', '--per-second', '7', '--per-month', 'unlimited')
    await run('limits', 'set', 'acme', 'admin', '--per-hour', 'blocked')
    const listed = await run('limits', 'list', 'acme')
    expect(listed.stdout).toMatchInlineSnapshot(`
      "CHAIN      PER SECOND  PER HOUR  PER DAY  PER MONTH
      *          7           100000    1000000  unlimited
      admin      7           blocked   1000000  unlimited
      (default)  100         100000    1000000  20000000
      "
    `)
    const refused = await signed(pair, service.connection.base_url)
    expect(refused.stderr).toContain('RATE_LIMIT_BLOCKED (403)')
    expect(await json('limits', 'get', 'acme', 'admin')).toMatchObject({
      ratelimit_info: { chain: 'admin', per_second_limit: 7, per_hour_limit: 0 },
    })
    await run('limits', 'delete', 'acme', '--all')
    expect((await signed(pair, service.connection.base_url)).code).toBe(0)
  })

  test('every list fits into a terminal of 80 columns, and shows long values whole', async () => {
    const name = 'the backend of the shop that everything else calls'
    const scopes = ['admin:read', 'q:read', 'c:read', 'c:write', 't:read', 'gateway:c/mainnet:read']
    const restrictions = ['--from', '203.0.113.0/24', '--expires', '2030-01-01T00:00:00.000Z']
    const given = [...scopes.flatMap((scope) => ['--scope', scope]), ...restrictions]
    const created = await run('keys', 'create', 'acme', '--name', name, ...given)
    expect([created.code, created.stderr]).toEqual([0, expect.stringContaining('Store the secret')])
    await run('organizations', 'create', 'a'.repeat(60), '--name', name)
    await run('limits', 'set', 'acme', '--per-second', '1000000000', '--per-day', '999999999999')
    const lists = [
      'organizations list',
      'keys list acme',
      'limits list acme',
      'chains',
      'status',
      'top --once',
      'doctor',
      'master-key status',
      'migrate --status',
      'migrate --plan',
      'call --list',
      'call --list admin CreateCredential',
      'audit head',
      'config check',
    ]
    const shown = new Map<string, string>()
    for (const list of lists) {
      const { stdout, stderr } = await runCommand(list.split(' '), { dataDir, columns: 80 })
      shown.set(list, stdout)
      const lines = stripVTControlCharacters(`${stdout}${stderr}`).split('\n')
      const wide = lines.filter((line) => line.length > 80)
      expect([list, wide]).toEqual([list, []])
    }
    const words = (text: string) => text.split(/\s+/)
    for (const word of [...words(name), ...scopes])
      expect(words(shown.get('keys list acme')!)).toContain(word)
    expect(shown.get('keys list acme')).toMatch(/^EXPIRES {4}2030-01-01T00:00:00/m)
    await run('limits', 'delete', 'acme', '--all')
  })

  test('organizations are listed in order', async () => {
    const all = await json('organizations', 'list')
    expect(all.map(({ domain }: { domain: string }) => domain).sort()).toEqual(
      ['acme', 'demo', 'one', 'three', 'two'].sort(),
    )
    expect(all[0]).toMatchObject({ domain: 'acme', disabled: false })
    expect(await json('organizations', 'show', all[0].organization_id)).toEqual(all[0])
  })
})
