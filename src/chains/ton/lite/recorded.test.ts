// Blocks, signatures and states of the production network, as a lite server gave them.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { Cell } from '@ton/core'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../lib/log.ts'
import { createVerificationCounts } from '../../verification.ts'
import { createOpening, createSealing, writeHandshake } from './adnl.ts'
import {
  holds,
  readInfo,
  readProvenBalance,
  readShardTops,
  readTransactions,
} from './block-cells.ts'
import { createKeyBlocks } from './key-blocks.ts'
import { createTlReader, type ForwardLink, ids, readPartialProof } from './messages.ts'
import { checkLink, provenValidators } from './validators.ts'

const folder = join(import.meta.dirname, '../../../../test/fixtures/ton/lite')
const readFixture = (name: string): Buffer => readFileSync(join(folder, name))

/** The links of a recorded proof. */
const readLinks = (name: string): ForwardLink[] => {
  const reader = createTlReader(readFixture(name))
  expect(reader.tag()).toBe(ids.partialBlockProof)
  return readPartialProof(reader).links
}
const flip = (bytes: Buffer, at: number): Buffer => {
  const copy = Buffer.from(bytes)
  copy[at]! ^= 1
  return copy
}

const check = (link: ForwardLink) => checkLink(link, provenValidators(link))

describe('signatures', () => {
  const ordinary = readLinks('chain.bin')
  const simplex = readLinks('one-link-simplex.bin')

  it('prove blocks of both forms, and which of them are key blocks', () => {
    expect(ordinary[0]!.from.seqno).toBe(46_894_135)
    expect(ordinary.at(-1)!.to.seqno).toBe(46_920_655)
    expect([...ordinary, ...simplex].map(check)).toEqual([
      { isKey: true },
      { isKey: true },
      { isKey: expect.any(Boolean) },
      { isKey: true },
    ])
    expect(simplex[0]!.to.seqno).toBe(59_379_986)
  })

  it.each([
    ['before Catchain 2.0', ordinary[0]!],
    ['since Catchain 2.0', simplex[0]!],
  ])('are refused when anything of them differs (%s)', (_, link) => {
    const { signatures } = link.signatures
    const checkChanged = (change: Partial<ForwardLink>) => {
      try {
        return check({ ...link, ...change })
      } catch {
        return { refusal: 'cannot be read' }
      }
    }
    const withSignatures = (changed: typeof signatures) =>
      checkChanged({ signatures: { ...link.signatures, signatures: changed } })
    const [first, ...rest] = signatures
    expect(withSignatures([{ ...first!, signature: flip(first!.signature, 5) }, ...rest])).toEqual({
      refusal: 'a signature is false',
    })
    expect(withSignatures(signatures.slice(0, 20))).toEqual({
      refusal: expect.stringMatching(/^signed by \d+ of \d+$/),
    })
    expect(withSignatures([first!, first!])).toEqual({
      refusal: 'a signer is no validator, or signs twice',
    })
    expect(withSignatures([{ ...first!, node: Buffer.alloc(32, 7) }, ...rest])).toEqual({
      refusal: 'a signer is no validator, or signs twice',
    })
    // Another file with the same cells, another header, other validators.
    expect(checkChanged({ to: { ...link.to, file_hash: flip(link.to.file_hash, 0) } })).toEqual({
      refusal: expect.stringMatching(/^a signature is false$|^the vote is for another block$/),
    })
    expect(checkChanged({ to: { ...link.to, root_hash: flip(link.to.root_hash, 0) } })).toEqual({
      refusal: 'cannot be read',
    })
    expect(checkChanged({ to: { ...link.to, seqno: link.to.seqno + 1 } })).toEqual({
      refusal: 'the header is of another block',
    })
    expect(
      checkChanged({ from: { ...link.from, root_hash: flip(link.from.root_hash, 3) } }),
    ).toEqual({
      refusal: 'cannot be read',
    })
    expect(checkChanged({ from: { ...link.from, seqno: link.from.seqno - 1 } })).toEqual({
      refusal: `key block ${link.from.seqno} lies between`,
    })
  })

  it('are followed from a trusted key block on', async () => {
    const counts = createVerificationCounts('full')
    const trusted = ordinary[0]!.from
    const keyBlocks = createKeyBlocks({ counts, log: silentLog, trusted })
    const target = ordinary.at(-1)!.to
    const refused = () => Promise.reject(new Error('not asked'))
    const ask = async () => ({ links: ordinary, to: target })
    await keyBlocks.prove(target, ask, refused)
    expect(keyBlocks.anchor()).toBe('key block 46894135')
    expect(counts.status().checked.signatures).toBe(3)
    // What is proved is not asked for again.
    await keyBlocks.prove(target, refused, refused)

    const forged = { ...target, root_hash: flip(target.root_hash, 1) }
    const again = createKeyBlocks({ counts, log: silentLog, trusted })
    await expect(again.prove(forged, ask, refused)).rejects.toThrow('has no proof')
    const old = { ...trusted, seqno: 5 }
    await expect(keyBlocks.prove(old, ask, refused)).rejects.toThrow(
      'masterchain block 5 is older than the trusted key block 46894135',
    )
    expect(counts.status().refused).toEqual({ signatures: expect.any(Number) })
    expect(counts.status().last_refusal).toMatch(/^masterchain block \d+/)
  })
})

describe('blocks', () => {
  it('are read from their bytes', () => {
    const data = readFixture('block-masterchain.bin')
    const root = Cell.fromBoc(data)[0]!
    expect(createHash('sha256').update(data).digest('hex')).toBe(
      'f4ae2e9f507acc26e6fbc0470296edf562f6237d3d84866f5023e32062c13faf',
    )
    expect(root.hash().toString('hex')).toBe(
      'e55bf9675a44540e6399b171a63045b48294a56e9c67ddb442c10f02adac15e0',
    )
    expect(readInfo(root)).toMatchObject({
      ...{ global_id: -239, workchain: -1, shard: 1n << 63n, seqno: 81_372_691, isKey: false },
      prev: [{ workchain: -1, shard: 1n << 63n, seqno: 81_372_690 }],
    })
    const tops = readShardTops(root)
    expect(tops.length).toBeGreaterThan(0)
    // Every account belongs to exactly one of them.
    for (const byte of [0, 0x3f, 0x80, 0xff])
      expect(tops.filter(({ shard }) => holds(shard, Buffer.alloc(32, byte)))).toHaveLength(1)
    expect(readTransactions(root, -1).length).toBeGreaterThan(0)

    const shard = Cell.fromBoc(readFixture('block-basechain.bin'))[0]!
    expect(readInfo(shard)).toMatchObject({ workchain: 0, shard: 1n << 63n, seqno: 86_062_610 })
    const transactions = readTransactions(shard, 0)
    expect(transactions.length).toBeGreaterThan(10)
    for (const { data: boc, transaction_id } of transactions)
      expect(Cell.fromBase64(boc).hash().toString('base64')).toBe(transaction_id.hash)
  })
})

describe('balances', () => {
  const readAnswer = (name: string) => {
    const lines = readFixture(name).toString().split('\n')
    const fields = new Map(
      lines
        .filter((line) => line.includes('='))
        .map((line) => line.split('=', 2) as [string, string]),
    )
    const bytes = (key: string) => Buffer.from(fields.get(key) ?? '', 'hex')
    const block = {
      ...{ workchain: 0, shard: 0n, seqno: 0, file_hash: Buffer.alloc(32) },
      root_hash: bytes('shard_block_root_hash'),
    }
    return { block, proof: bytes('proof'), state: bytes('state'), account: bytes('account_id') }
  }

  it.each(['read-basechain.txt', 'read-masterchain.txt'])(
    'are proved by the state (%s)',
    (name) => {
      const { block, proof, state, account } = readAnswer(name)
      const balance = readProvenBalance(proof, block, account)
      expect(balance).toBeGreaterThan(0n)
      // The proof holds the hash of the account, whose cells have the same balance.
      expect(balance).toBe(balanceIn(Cell.fromBoc(state)[0]!))
      expect(() => readProvenBalance(proof, block, flip(account, 0))).toThrow()
      const other = { ...block, root_hash: flip(block.root_hash, 0) }
      expect(() => readProvenBalance(proof, other, account)).toThrow()
      expect(() => readProvenBalance(flip(proof, proof.length - 40), block, account)).toThrow()
    },
  )

  it('are 0 where the state has no such account', () => {
    const { block, proof, account } = readAnswer('read-absent.txt')
    expect(readProvenBalance(proof, block, account)).toBe(0n)
  })
})

/** The balance in the cells of an account. */
function balanceIn(account: Cell): bigint {
  const slice = account.beginParse()
  slice.skip(1)
  slice.loadAddress()
  // Its size and when it last paid for storage.
  slice.loadVarUintBig(3)
  slice.loadVarUintBig(3)
  if (slice.loadUint(3) === 1) slice.skip(256)
  slice.skip(32)
  if (slice.loadBit()) slice.loadCoins()
  slice.skip(64)
  return slice.loadCoins()
}

describe('the protocol', () => {
  it('has the numbers of the scheme', () => {
    const block = 'tonNode.blockIdExt'
    const numberOf = (line: string) => crc32(line)
    expect(numberOf('liteServer.getMasterchainInfo = liteServer.MasterchainInfo')).toBe(
      ids.getMasterchainInfo,
    )
    expect(numberOf(`liteServer.getBlock id:${block} = liteServer.BlockData`)).toBe(ids.getBlock)
    expect(numberOf(`liteServer.blockData id:${block} data:bytes = liteServer.BlockData`)).toBe(
      ids.blockData,
    )
    expect(
      numberOf(
        'liteServer.lookupBlock mode:# id:tonNode.blockId lt:mode.1?long utime:mode.2?int = liteServer.BlockHeader',
      ),
    ).toBe(ids.lookupBlock)
    expect(
      numberOf(
        `liteServer.runSmcMethod mode:# id:${block} account:liteServer.accountId method_id:long params:bytes = liteServer.RunMethodResult`,
      ),
    ).toBe(ids.runSmcMethod)
    expect(
      numberOf(
        'liteServer.signatureSet.simplex cc_seqno:int validator_set_hash:int signatures:vector liteServer.signature session_id:int256 slot:int candidate:bytes = liteServer.SignatureSet',
      ),
    ).toBe(ids.signatureSetSimplex)
  })

  it('has the handshake and the frames of the reference implementation', () => {
    // Made by another implementation that has talked to a lite server of mainnet (ton-net, its description of the wire format).
    const server = Buffer.from(
      '9f85439d2094b92a639c2c9493d7b740e39dea8d08b525986d39d6dd69e7f309',
      'hex',
    )
    const params = Buffer.from(Array.from({ length: 160 }, (_, index) => (index * 3 + 5) % 256))
    const packet = writeHandshake(server, Buffer.alloc(32, 0x11), params)
    expect(packet.subarray(0, 96).toString('hex')).toBe(
      '5b281b7d9c4559afe95175a529ffd1b6bfb818fb73cf4ac47d7d500d8a25f9dc' +
        'd04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737' +
        '85afab363ab509cd0ef3eaf2c68a0087b2469aeadf927ba4378c1e6f372923a0',
    )
    expect(packet.subarray(96, 128).toString('hex')).toBe(
      '08439a231a8ea4ff01e166f8f2f862e0eb984d63b468a261f415ff7167efa9d6',
    )
    const [key, iv] = [params.subarray(32, 64), params.subarray(80, 96)]
    const frame = createSealing(key, iv)(Buffer.from('getMasterchainInfo'), Buffer.alloc(32, 0x22))
    expect(frame.toString('hex')).toBe(
      '1226b10422a78cec84bb185099587ad191f680319c0d4ac7c84041a9344ca708' +
        '944fd72c06279304de013d4e31638ced02f51083bb8e1553ee3fd91eedaee9cb' +
        'de5eb5b85168861aeda9114ae1fc6aa4984e556c3e6c',
    )
    // Frames come in any pieces; one that is damaged or too long ends the connection.
    const open = createOpening(key, iv)
    expect([...frame].flatMap((byte) => open(Buffer.of(byte))).map(String)).toEqual([
      'getMasterchainInfo',
    ])
    expect(() => createOpening(key, iv)(flip(frame, 50))).toThrow('a frame is damaged')
    expect(() => createOpening(key, iv)(flip(frame, 3))).toThrow(/^a frame of \d+ bytes$/)
  })
})
