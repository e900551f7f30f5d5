import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { formatSecret, sign } from '../../src/domain/webhooks/secret.ts'

const page = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
const python = /```python\n(.*?)```/s.exec(page)?.[1]
const hasPython = spawnSync('python3', ['--version']).status === 0

it.skipIf(!hasPython)(
  'the Python of the docs verifies a delivery, and refuses a changed one',
  async () => {
    const secret = randomBytes(32)
    const body = '{"data":{"name":"Zürich"}}'
    const timestamp = Math.floor(Date.now() / 1000)
    const id = 'id-1'
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': `${timestamp}`,
      'webhook-signature': sign([randomBytes(32), secret], { id, timestamp, body }),
    }
    const verdict = async (given: object, text: string) => {
      const program = `${python}\nimport json, sys\nprint(verify(*json.loads(sys.argv[1])[:2], sys.argv[2].encode()))`
      const call = JSON.stringify([formatSecret(secret), given])
      const { stdout } = await promisify(execFile)('python3', ['-c', program, call, text])
      return stdout.trim()
    }
    expect(await verdict(headers, body)).toBe('True')
    expect(await verdict(headers, `${body} `)).toBe('False')
    expect(await verdict({ ...headers, 'webhook-timestamp': `${timestamp - 301}` }, body)).toBe(
      'False',
    )
  },
)
