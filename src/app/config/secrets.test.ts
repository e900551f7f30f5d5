import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkConfig, checkSecrets, loadConfig } from './load.ts'
import { resolveSecret } from './secrets.ts'
import { sentencesOf, temporaryFolder } from './testing/fixture.ts'

describe('resolveSecret', () => {
  it('returns a literal, the content of a file or the value of a variable', () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'secret')
    writeFileSync(file, 'from file\n', { mode: 0o600 })
    const env = { NAME: 'from env' }
    expect(resolveSecret('literal', { env })).toBe('literal')
    expect(resolveSecret('env:NAME', { env })).toBe('from env')
    expect(resolveSecret(`file:${file}`, { env })).toBe('from file')
  })

  it('reports the problem, and never the secret', () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'empty'), '\n')
    writeFileSync(join(folder.path, 'large'), 'x'.repeat(70_000))
    mkdirSync(join(folder.path, 'folder'))
    const references = [
      'env:NAME',
      ...['no', 'empty', 'large', 'folder'].map((n) => `file:${folder.path}/${n}`),
    ]
    const sentences = references.flatMap((reference) =>
      sentencesOf(() => resolveSecret(reference, { env: {}, key: 'security.master_key' })),
    )
    expect(sentences.map((text) => text.replaceAll(folder.path, '/run'))).toMatchInlineSnapshot(`
      [
        "\`security.master_key\` is \`env:NAME\`, but the variable \`NAME\` is not set.",
        "\`security.master_key\` is \`file:/run/no\`, but the file does not exist.",
        "\`security.master_key\` is \`file:/run/empty\`, but the file is empty.",
        "\`security.master_key\` is \`file:/run/large\`, but the file is larger than 65536 bytes.",
        "\`security.master_key\` is \`file:/run/folder\`, but that is a folder.",
      ]
    `)
  })

  it('warns when every user can read the file', () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'secret')
    writeFileSync(file, 'x')
    chmodSync(file, 0o644)
    const warnings: string[] = []
    resolveSecret(`file:${file}`, { env: {}, warn: (message) => warnings.push(message) })
    chmodSync(file, 0o600)
    resolveSecret(`file:${file}`, { env: {}, warn: (message) => warnings.push(message) })
    expect(warnings.map((text) => text.replaceAll(folder.path, '/run'))).toMatchInlineSnapshot(`
      [
        "The secret is read from /run/secret, which every user of this machine can read. Run: chmod 600 /run/secret",
      ]
    `)
  })
})

describe('checkConfig', () => {
  it('lists nothing when all is well', () => {
    expect(checkConfig({ env: {}, cwd: '/' })).toEqual([])
  })

  it('lists the reasons for which loading fails', () => {
    expect(checkConfig({ env: { PORTOLAN_PORT: 'x' }, cwd: '/' })).toMatchInlineSnapshot(`
      [
        {
          "key": "server.port",
          "message": "\`server.port\` in the variable \`PORTOLAN_PORT\` must be a whole number from 0 to 65535; it is \`x\`.",
          "variable": "PORTOLAN_PORT",
        },
      ]
    `)
  })

  it('follows the references of secrets', () => {
    const env = {
      URL_A: 'http://not-a-database',
      URL_B: 'env:URL_A',
      DATABASE_URL: 'env:URL_A',
      REDIS_URL: 'env:URL_B',
    }
    const overrides = { security: { master_key: 'env:MISSING' } }
    const problems = checkConfig({ env, cwd: '/', overrides })
    expect(problems.map(({ message }) => message)).toMatchInlineSnapshot(`
      [
        "\`database.url\` is \`env:URL_A\`, and what is there must be an address that starts with \`postgres://\` or \`postgresql://\`, or a \`file:\` or \`env:\` reference.",
        "\`redis.url\` is \`env:URL_B\`, and what is there must be the secret itself.",
        "\`security.master_key\` is \`env:MISSING\`, but the variable \`MISSING\` is not set.",
      ]
    `)
  })

  it('refuses a malformed reference', () => {
    const overrides = { security: { master_key: 'env:not a name' } }
    expect(
      checkConfig({ env: {}, cwd: '/', overrides }).map((p) => p.message),
    ).toMatchInlineSnapshot(`
      [
        "\`security.master_key\` on the command line must be a reference like \`file:/run/secrets/name\` or \`env:NAME\`.",
      ]
    `)
  })
})

it('checkSecrets finds nothing in a configuration without references', () => {
  expect(checkSecrets(loadConfig({ env: {}, cwd: '/' }), { env: {} })).toEqual([])
})
