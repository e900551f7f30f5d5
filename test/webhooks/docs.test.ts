import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { formatSecret, sign } from '../../src/domain/webhooks/secret.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const page = await readFile(join(root, 'docs/webhooks.md'), 'utf8')
const snippetOf = (language: string): string => {
  const [, code] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (!code) throw new Error(`no ${language} in the docs`)
  return code
}
const has = (command: string, argument: string): boolean =>
  spawnSync(command, [argument]).status === 0

type Headers = Record<string, string>

/** Runs the code of the docs on one delivery and says whether it takes it. */
type Verify = (secret: string, headers: Headers, body: string) => Promise<boolean>

const folderOf = async (files: Record<string, string>, at = tmpdir()): Promise<string> => {
  const folder = await mkdtemp(join(at, 'portolan-docs-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return folder
}

const typescript = async (): Promise<Verify> => {
  const client = join(root, 'client/src/index.ts')
  const code = snippetOf('ts').replace(`'@portolan/client'`, JSON.stringify(client))
  const folder = await folderOf({
    'verify.ts': `${code}
const store = async (id: string, { data }: { data: object }) => console.error(id, data)
const [headers, body] = JSON.parse(process.argv[2]!)
const request = new Request('http://receiver.invalid', { method: 'POST', headers, body })
console.log((await handle(request)).status)`,
  })
  return async (secret, headers, body) => {
    const args = [join(folder, 'verify.ts'), JSON.stringify([headers, body])]
    const env = { ...process.env, SIGNING_SECRET: secret }
    const { stdout } = await run(process.execPath, args, { env })
    expect(stdout.trim()).toMatch(/^(204|401)$/)
    return stdout.trim() === '204'
  }
}

const python = async (): Promise<Verify> => {
  const program = `${snippetOf('python')}
import json, sys
print(verify(*json.loads(sys.argv[1]), sys.argv[2].encode()))`
  return async (secret, headers, body) => {
    const { stdout } = await run('python3', [
      '-c',
      program,
      JSON.stringify([secret, headers]),
      body,
    ])
    expect(stdout.trim()).toMatch(/^(True|False)$/)
    return stdout.trim() === 'True'
  }
}

const go = async (): Promise<Verify> => {
  const packages = ['crypto/hmac', 'crypto/sha256', 'encoding/base64', 'encoding/json', 'errors']
  const more = ['fmt', 'math', 'net/http', 'os', 'strconv', 'strings', 'time']
  const folder = await folderOf({
    'main.go': `package main
import (${[...packages, ...more].map((name) => `\n\t"${name}"`).join('')}
)

${snippetOf('go')}
func main() {
	given := map[string]string{}
	if err := json.Unmarshal([]byte(os.Args[2]), &given); err != nil {
		panic(err)
	}
	header := http.Header{}
	for name, value := range given {
		header.Set(name, value)
	}
	fmt.Println(verify(os.Args[1], header, []byte(os.Args[3])) == nil)
}
`,
  })
  const program = join(folder, 'verify')
  const env = { ...process.env, GOCACHE: join(folder, 'cache'), GOFLAGS: '-mod=mod' }
  await run('go', ['build', '-o', program, join(folder, 'main.go')], { env, cwd: folder })
  return async (secret, headers, body) => {
    const { stdout } = await run(program, [secret, JSON.stringify(headers), body])
    expect(stdout.trim()).toMatch(/^(true|false)$/)
    return stdout.trim() === 'true'
  }
}

const languages = [
  { name: 'TypeScript', isHere: true, open: typescript },
  { name: 'Python', isHere: has('python3', '--version'), open: python },
  { name: 'Go', isHere: has('go', 'version'), open: go },
]

describe('what the docs show', () => {
  for (const { name, isHere, open } of languages)
    it.skipIf(!isHere)(
      `in ${name} takes a delivery, and refuses one that is changed, old or of another secret`,
      async () => {
        const verify = await open()
        const secret = randomBytes(32)
        const text = formatSecret(secret)
        const body = '{"webhook_history_id":"id-1","data":{"name":"Zürich"}}'
        const timestamp = Math.floor(Date.now() / 1000)
        const id = 'id-1'
        const headersAt = (time: number, secrets = [randomBytes(32), secret]): Headers => ({
          'webhook-id': id,
          'webhook-timestamp': `${time}`,
          'webhook-signature': sign(secrets, { id, timestamp: time, body: Buffer.from(body) }),
        })
        expect(await verify(text, headersAt(timestamp), body)).toBe(true)
        expect(await verify(text, headersAt(timestamp), `${body} `)).toBe(false)
        expect(await verify(text, headersAt(timestamp - 400), body)).toBe(false)
        expect(await verify(text, headersAt(timestamp, [randomBytes(32)]), body)).toBe(false)
      },
      // The first build compiles parts of Go's own library.
      300_000,
    )
})
