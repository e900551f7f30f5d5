import { execFile, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { freshFolder, startService } from './portolan.ts'

const run = promisify(execFile)
const guide = await readFile(join(import.meta.dirname, '../../docs/signing.md'), 'utf8')
const code = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(guide)?.[1] ?? ''
const has = (program: string, ...args: string[]) => spawnSync(program, args).status === 0

const folder = await freshFolder()
await startService(join(folder, '.data'))

const languages = [
  { language: 'ts', file: 'sign.ts', command: [process.execPath], isHere: true },
  {
    language: 'python',
    file: 'sign.py',
    command: ['python3'],
    isHere: has('python3', '--version'),
  },
  { language: 'go', file: 'sign.go', command: ['go', 'run'], isHere: has('go', 'version') },
  {
    language: 'sh',
    file: 'sign.sh',
    command: ['bash'],
    isHere: has('python3', '--version') && has('openssl', 'version') && has('curl', '--version'),
  },
]

test.each(languages)('the $language of docs/signing.md is accepted', async (example) => {
  const { language, file, command, isHere } = example
  expect(code(language)).toContain('x-api-signature')
  if (!isHere)
    return console.warn(`${command[0]} is not here: docs/signing.md was not tried with it`)
  await writeFile(join(folder, file), code(language))
  const [program = '', ...args] = command
  const { stdout } = await run(program, [...args, file], { cwd: folder })
  expect(stdout).toContain('200')
  expect(stdout).toContain('"wallets":[]')
})
