import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { freshFolder, portolan, runCommand } from './portolan.ts'

const modulesOf = async (...args: string[]): Promise<string[]> => {
  const file = join(await freshFolder(), 'modules')
  const node = ['--import', join(import.meta.dirname, 'trace-modules.ts')]
  // The sources: a bundle has other modules.
  const program = join(import.meta.dirname, '../../src/main.ts')
  const { code } = await portolan(args, { node, program, env: { TRACE_FILE: file } })
  expect(code).toBe(0)
  return (await readFile(file, 'utf8')).split('\n')
}

const commands = [
  'start',
  'doctor',
  'call',
  'organizations',
  'keys',
  'limits',
  'config',
  'init',
  'faucet',
  'listen',
]

test.each([
  ['--help'],
  ['--version'],
  ['help', 'call'],
  ...commands.map((name) => [name, '--help']),
])('%s %s loads nothing but the tree of commands', async (...args) => {
  const packages = (await modulesOf(...args))
    .map((url) => /node_modules\/([^/]+)/.exec(url)?.[1])
    .filter((name) => name !== undefined)
  expect([...new Set(packages)]).toEqual(['commander'])
})

test('prints help, or the version', async () => {
  const bare = await portolan([])
  const asked = await portolan(['--help'])
  expect(bare).toEqual(asked)
  expect(asked).toMatchObject({ code: 0, stderr: '' })
  expect(asked.stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  expect(asked.stdout).toMatchInlineSnapshot(`
    "Usage: portolan [options] [command]

    Wallet tracking, webhooks, chain queries and a node gateway for many
    organizations.

    Options:
      -V, --version            print the version
      -c, --config <file>      configuration file
      -d, --data-dir <folder>  folder for all that the service keeps
      --debug                  show where an unexpected error comes from
      -h, --help               explain a command

    Run:
      start                    run the service
      status                   show chains, tracking, webhooks and problems of the
                               running service
      top                      show the busiest organizations, keys, methods and
                               nodes
      logs                     filter and follow the JSON log of the service
      doctor                   check everything that the service needs

    Use:
      call                     call an operation of a running service
      chains                   show, add and remove chains
      listen                   receive webhook deliveries, verify and print them

    Try (embedded mode):
      faucet                   send native coin to an address on a local chain
      reorg                    replace the newest blocks of local chain c

    Administer (works with and without a running service):
      apply                    bring organizations to what a document says
      organizations            list, create, show, rename, enable, disable and
                               delete organizations
      keys                     list, create, rotate and revoke API keys
      limits                   list, get, set and delete rate limits
      master-key               show and rotate the key that seals secrets
      audit                    verify and export the audit log
      backfill                 index the history of the registered addresses
      rewind                   remove everything above a block and track it again

    Set up:
      init                     write portolan.yaml for your own nodes
      config                   check, print and reload the configuration
      nodes                    add and remove nodes of a network
      migrate                  bring the database to the schema of this version
      export                   write the whole installation into one file
      import                   read such a file into an empty database
      backup                   copy the embedded database to a folder while it runs
      restore                  bring the embedded database back to a moment
      completion               print a script that completes commands in your shell
      help [command]           explain a command

    Examples:
      portolan start                             everything embedded
      portolan call admin ListOrganizations      call an operation of the service
      portolan keys create demo --name backend   make a credential
      portolan config example > portolan.yaml    begin a configuration file
      portolan doctor                            find the cause of a failure

    The configuration is --config, else PORTOLAN_CONFIG, else portolan.yaml in this
    folder. Every command explains itself with --help.
    "
  `)
  expect(await portolan(['--version'])).toEqual({
    code: 0,
    stdout: `${manifest.version}\n`,
    stderr: '',
  })
})

test('no help is wider than 80 columns', async () => {
  const namesIn = (text: string) =>
    [...text.matchAll(/^ {2}([a-z][a-z-]*)(?= |$)/gm)].map(([, name]) => name!)
  const wide: string[] = []
  const look = async (path: readonly string[]): Promise<string> => {
    const { stdout } = await runCommand([...path, '--help'])
    wide.push(...stdout.split('\n').filter((line) => line.length > 80))
    return stdout
  }
  const skipped = new Set(['help', 'portolan'])
  const commands = [...new Set(namesIn(await look([])))].filter((name) => !skipped.has(name))
  expect(commands.length).toBeGreaterThan(25)
  for (const name of commands) {
    const [, list = ''] = /\nCommands:\n([\s\S]*?)\n\n/.exec(await look([name])) ?? []
    for (const part of namesIn(list)) if (!skipped.has(part)) await look([name, part])
  }
  expect(wide).toEqual([])
})

test('a wrong call is explained and ends with 2', async () => {
  expect(await portolan(['strat'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Unknown command 'strat'. Did you mean start?
    ",
      "stdout": "",
    }
  `)
  expect(await portolan(['start', '--prot', '1'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Unknown option '--prot'. Did you mean --port?
    ",
      "stdout": "",
    }
  `)
  expect(await portolan(['start', '--port', '99999'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Option '-p, --port <number>' argument '99999' is invalid. A port is a number from 0 to 65535.
    ",
      "stdout": "",
    }
  `)
  expect(await portolan(['keys', 'lst'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Unknown command 'lst'. Did you mean list?
    ",
      "stdout": "",
    }
  `)
  expect(await portolan(['keys', 'create'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Missing required argument 'organization'.
    ",
      "stdout": "",
    }
  `)
  expect(await portolan(['start', 'now'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Too many arguments for 'start'. Expected 0 arguments but got 1: now.
    ",
      "stdout": "",
    }
  `)
  const group = await portolan(['keys'])
  expect(group).toMatchObject({ code: 2, stdout: '' })
  expect(group.stderr).toContain('Usage: portolan keys')
})
