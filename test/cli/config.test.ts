import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFolder, runCommand } from './portolan.ts'

test('checks, prints and explains the configuration', async () => {
  const cwd = await freshFolder()
  const none = await runCommand(['config', 'check'], { cwd })
  expect(none).toMatchObject({
    code: 0,
    stdout: 'There is no configuration file, and the rest is fine.\n',
  })

  const example = await runCommand(['config', 'example'], { cwd })
  await writeFile(join(cwd, 'portolan.yaml'), example.stdout)
  const checked = await runCommand(['config', 'check'], { cwd })
  expect(checked).toMatchObject({ code: 0, stdout: `${cwd}/portolan.yaml is fine.\n` })

  const schema = await runCommand(['config', 'schema'], { cwd })
  expect(JSON.parse(schema.stdout)).toMatchObject({ title: 'Portolan configuration' })

  const env = { DATABASE_URL: 'postgres://user:hunter2@db/portolan' }
  const printed = await runCommand(['config', 'print', '--data-dir', 'here'], { cwd, env })
  expect(printed.stdout).not.toContain('hunter2')
  expect(printed.stdout).toContain(`data_dir: ${cwd}/here # command line`)
})

test('names every problem at once, and ends with 1', async () => {
  const cwd = await freshFolder()
  await writeFile(
    join(cwd, 'portolan.yaml'),
    'server:\n  prot: 1\nsecurity:\n  master_key: file:/none\nredis:\n  url: http://x\n',
  )
  expect(await runCommand(['config', 'check'], { cwd })).toMatchInlineSnapshot(`
    {
      "code": 1,
      "stderr": "Unknown key \`server.prot\` in portolan.yaml line 2. Did you mean \`server.port\`?
    \`redis.url\` in portolan.yaml line 6 must be an address that starts with \`redis://\` or \`rediss://\`, or a \`file:\` or \`env:\` reference.
    ",
      "stdout": "",
    }
  `)
  const other = await runCommand(['config', 'check', '--config', 'none.yaml'], { cwd })
  expect(other).toMatchInlineSnapshot(`
    {
      "code": 1,
      "stderr": "The configuration file none.yaml does not exist.
    ",
      "stdout": "",
    }
  `)
})
