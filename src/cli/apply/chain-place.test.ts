import { expect, test } from 'vitest'
import type { Path } from '../../app/config/problem.ts'
import type { WalletService } from '../../contract/variant.ts'
import { canonical } from './chain-place.ts'
import type { PlanTools } from './plan-tools.ts'

const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const lower = address.toLowerCase()

const read = (service: WalletService, text: string) => {
  const refused: string[] = []
  const refuse = (_: Path, problem: string) => refused.push(problem)
  return [canonical({ service, path: [] }, text, { refuse } as unknown as PlanTools), ...refused]
}

test('addresses of a document may have a checksum, which has to be right', () => {
  expect(read('c', address)).toEqual([lower])
  expect(read('c', lower)).toEqual([lower])
  const wrong = address.replace('5aA', '5aa')
  expect(read('c', wrong)).toEqual([undefined, expect.stringMatching(/checksum .* is wrong/)])
  // On Sui the case of the digits says nothing.
  expect(read('s', wrong)).toEqual([`0x${lower.slice(2).padStart(64, '0')}`])
})
