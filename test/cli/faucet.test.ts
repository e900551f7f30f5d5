import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { freshFolder, runCommand } from './portolan.ts'

const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

test('the faucet takes an address with a checksum, and refuses a wrong one before it asks', async () => {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    asked.push(JSON.parse(await text(request)).address)
    response.end('{"transaction_hash":"0x01"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const dataDir = await freshFolder()
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await writeFile(join(dataDir, 'connection.json'), JSON.stringify({ base_url }))
  const faucet = (chain: string, to: string) => runCommand(['faucet', chain, to], { dataDir })
  for (const chain of ['c', 'q'])
    expect(await faucet(chain, address)).toMatchObject({ code: 0, stdout: '0x01\n' })
  expect(asked.splice(0)).toEqual([address.toLowerCase(), address.toLowerCase()])
  const wrong = address.replace('5aA', '5aa')
  const refused = await faucet('c', wrong)
  expect([refused.code, asked]).toEqual([1, []])
  expect(refused.stderr).toMatch(/address: .*checksum .* is wrong/)
  // On Sui the case of the digits says nothing.
  expect((await faucet('s', wrong)).code).toBe(0)
  expect(asked).toEqual([wrong])
})
