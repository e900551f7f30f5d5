import { execFile } from 'node:child_process'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { freshFolder, runCommand, startService } from './portolan.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const readme = await readFile(join(root, 'README.md'), 'utf8')
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code]) => code!,
  )
const commands = blocks('sh')
  .join('')
  .split('\n')
  .filter((line) => line.startsWith('npx portolan '))
  .map((line) => line.replace(/\s+#.*$/, '').replace('npx portolan ', ''))

/** Splits a line as a shell would, as far as the README goes. */
const words = (line: string) =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => (a ?? b ?? c)!)

it('every command, the TypeScript and the shell script of the README work', {
  timeout: 180_000,
}, async () => {
  const folder = await freshFolder()
  const service = await startService(join(folder, '.data'), { args: ['--chains', 'c'] })
  const dataDir = join(folder, '.data')
  expect(commands.length).toBeGreaterThan(5)
  for (const line of commands) {
    // A configuration file would change what the other commands see.
    const cwd = line.startsWith('init') ? await freshFolder() : folder
    const { code, stderr } = await runCommand(words(line), { dataDir, cwd })
    expect(`${line}: ${code} ${code ? stderr : ''}`).toBe(`${line}: 0 `)
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'example.ts'), blocks('ts')[0]!)
  const example = await run(process.execPath, ['example.ts'], { cwd: folder })
  const { organization_id } = service.connection
  expect(example.stdout.trim()).toBe(organization_id)
  const script = blocks('sh').find((code) => code.startsWith('base='))!
  // jq is not on every machine; its part is reading three fields of a file.
  const withoutJq = script.replaceAll(
    /\$\(jq -r \.(\S+) \.data\/connection\.json\)/g,
    (_, path: string) => `$(node -p "require('./.data/connection.json').${path}")`,
  )
  const { stdout } = await run('bash', ['-c', withoutJq], { cwd: folder })
  expect(JSON.parse(stdout).organization).toMatchObject({ organization_id, domain: 'demo' })
})
