// A lite server of the development chain, over ADNL.
import {
  createCipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  randomBytes,
} from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Address, Cell, parseTuple } from '@ton/core'
import type { BlockId } from './block.ts'
import type { TonChain } from './chain.ts'
import { createLiteBlocks, publicOf } from './lite-blocks.ts'
import { tagged, tlBytes, writeId } from './lite-wire.ts'
import { assertSerializable } from './stack.ts'

/** A running lite server. */
export type LiteServer = {
  host: string
  port: number
  /** Its public key. */
  key: Buffer
  /** The first key block. */
  trusted(): BlockId
  /** Changes an answer on its way out, by the name of the request. */
  tamper(change: ((request: string, answer: Buffer) => Buffer) | undefined): void
  /** Answers, keeps silent, or ends its connections and refuses new ones. */
  setMode(mode: 'up' | 'hanging' | 'down'): void
  /** How many requests came, by name. */
  requests: Map<string, number>
  stop(): Promise<void>
}

const sha256 = (...parts: Buffer[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
const cipher = (key: Buffer, iv: Buffer) => createCipheriv('aes-256-ctr', key, iv)

const field = 2n ** 255n - 19n
const power = (base: bigint, exponent: bigint): bigint => {
  let [result, b] = [1n, base % field]
  for (let e = exponent; e > 0n; e >>= 1n, b = (b * b) % field)
    if (e & 1n) result = (result * b) % field
  return result
}
/** The secret that the owner of a seed shares with the owner of an ed25519 key. */
function agree(seed: Buffer, key: Buffer): Buffer {
  const y = BigInt(`0x${Buffer.from(key).reverse().toString('hex')}`) & (2n ** 255n - 1n)
  const u = ((1n + y) * power(1n - y + field, field - 2n)) % field
  const point = Buffer.from(u.toString(16).padStart(64, '0'), 'hex').reverse()
  const scalar = createHash('sha512').update(seed).digest().subarray(0, 32)
  const read = (prefix: string, bytes: Buffer) => Buffer.concat([Buffer.from(prefix, 'hex'), bytes])
  return diffieHellman({
    privateKey: createPrivateKey({
      key: read('302e020100300506032b656e04220420', scalar),
      format: 'der',
      type: 'pkcs8',
    }),
    publicKey: createPublicKey({
      key: read('302a300506032b656e032100', point),
      format: 'der',
      type: 'spki',
    }),
  })
}

/** A refusal in the words of a lite server. */
class LiteError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

const names = new Map([
  [0x89b5e62e, 'getMasterchainInfo'],
  [0x6377cf0d, 'getBlock'],
  [0xfac8f71e, 'lookupBlock'],
  [0x8aea9c44, 'getBlockProof'],
  [0x6b890e25, 'getAccountState'],
  [0x5cc65dd2, 'runSmcMethod'],
])
// Links in one answer.
const mostLinks = 4

const readBytes = (from: Buffer, at: number): Buffer => {
  const isLong = from[at] === 254
  const begin = at + (isLong ? 4 : 1)
  return from.subarray(begin, begin + (isLong ? from.readUIntLE(at + 1, 3) : from[at]!))
}
const readPlace = (from: Buffer, at: number) => ({
  workchain: from.readInt32LE(at),
  shard: from.readBigUInt64LE(at + 4),
  seqno: from.readInt32LE(at + 12),
})

/** Starts a lite server. */
export async function startLiteServer(
  chain: TonChain,
  { globalId, keyEvery = 5 }: { globalId: number; keyEvery?: number },
): Promise<LiteServer> {
  const seed = sha256(Buffer.from('key of the lite server'))
  const key = publicOf(seed)
  const blocks = createLiteBlocks(chain, { globalId, keyEvery })
  const requests = new Map<string, number>()
  let mode: 'up' | 'hanging' | 'down' = 'up'
  let change: ((request: string, answer: Buffer) => Buffer) | undefined

  const blockAt = (request: Buffer, at: number) => {
    const found = blocks.find(readPlace(request, at))
    if (!found) throw new LiteError(651, 'LITE_SERVER_NOTREADY: seqno not in db')
    return found
  }
  const exact = (request: Buffer, at: number) => {
    const found = blockAt(request, at)
    if (!request.subarray(at + 16, at + 48).equals(found.id.root_hash))
      throw new LiteError(651, 'cannot find block: another one has this number')
    return found
  }
  const topOf = (seqno: number, workchain: number, hash: Buffer) => {
    if (workchain === -1) return blocks.find({ workchain, shard: 1n << 63n, seqno })!
    const { shards } = chain.store.block(-1, 1n << 63n, seqno)!
    const mark = (shard: bigint) => ((shard & -shard) << 1n) - 1n
    const prefix = hash.readBigUInt64BE(0)
    const shard = shards.find((one) => ((one.shard ^ prefix) & ~mark(one.shard)) === 0n)!
    return blocks.find(shard)!
  }
  const answerTo: Record<string, (request: Buffer) => Buffer | Promise<Buffer>> = {
    getMasterchainInfo: () => {
      const { id } = blocks.head()
      const { root_hash, file_hash } = chain.zero(-1)
      const workchain = Buffer.alloc(4, 0xff)
      return tagged(0x85832881, writeId(id), Buffer.alloc(32), workchain, root_hash, file_hash)
    },
    getBlock: (request) => {
      const { id, boc } = exact(request, 4)
      return tagged(0xa574ed6c, writeId(id), tlBytes(boc))
    },
    lookupBlock: (request) =>
      tagged(0x752d8219, writeId(blockAt(request, 8).id), Buffer.alloc(4), tlBytes(Buffer.of())),
    getBlockProof: (request) => {
      const [known, target] = [exact(request, 8), exact(request, 88)]
      const links: Buffer[] = []
      let from = known
      while (from.id.seqno < target.id.seqno && links.length < mostLinks) {
        let next = from.id.seqno + 1
        while (next < target.id.seqno && !blocks.isKey(next)) next++
        const to = blocks.find({ ...from.id, seqno: next })!
        links.push(blocks.linkOf(from, to))
        from = to
      }
      const isComplete = from.id.seqno === target.id.seqno
      const count = Buffer.alloc(4)
      count.writeInt32LE(links.length)
      const flag = tagged(isComplete ? 0x997275b5 : 0xbc799737)
      return tagged(0x8ed0d2c1, flag, writeId(known.id), writeId(from.id), count, ...links)
    },
    getAccountState: (request) => {
      const { id } = exact(request, 4)
      const top = topOf(id.seqno, request.readInt32LE(84), request.subarray(88, 120))
      return tagged(
        0x7079c751,
        writeId(id),
        writeId(top.id),
        tlBytes(Buffer.of()),
        tlBytes(blocks.stateProof(top)),
        tlBytes(Buffer.of()),
      )
    },
    runSmcMethod: async (request) => {
      const { id } = exact(request, 8)
      const address = new Address(request.readInt32LE(88), request.subarray(92, 124))
      const { code, data, balance } = chain.account(address.toRawString(), id.seqno)
      const head = [Buffer.of(4, 0, 0, 0), writeId(id), writeId(id)]
      const exit = Buffer.alloc(4)
      if (!code || !data) {
        exit.writeInt32LE(-256)
        return tagged(0xa39a616b, ...head, exit, tlBytes(Buffer.of()))
      }
      const ran = await chain.rules.ask(
        { address, code, data, balance },
        {
          method: Number(request.readBigUInt64LE(124)),
          stack: parseTuple(Cell.fromBoc(readBytes(request, 132))[0]!),
          utime: chain.head().utime,
        },
      )
      assertSerializable(Cell.fromBase64(ran.stack_boc))
      exit.writeInt32LE(ran.exit_code)
      return tagged(0xa39a616b, ...head, exit, tlBytes(Buffer.from(ran.stack_boc, 'base64')))
    },
  }
  const answer = async (request: Buffer): Promise<Buffer> => {
    const name = names.get(request.readUInt32LE(0)) ?? 'unknown'
    requests.set(name, (requests.get(name) ?? 0) + 1)
    try {
      const work = answerTo[name]
      if (!work) throw new LiteError(621, 'unknown query')
      const given = await work(request)
      return change?.(name, given) ?? given
    } catch (error) {
      const code = Buffer.alloc(4)
      code.writeInt32LE(error instanceof LiteError ? error.code : 228)
      return tagged(0xbba9e148, code, tlBytes(Buffer.from(String((error as Error).message))))
    }
  }

  const serve = (socket: Socket): void => {
    let bytes = Buffer.alloc(0)
    let session: { read: ReturnType<typeof cipher>; send(payload: Buffer): void } | undefined
    const handshake = (packet: Buffer): void => {
      const hash = packet.subarray(64, 96)
      const secret = agree(seed, packet.subarray(32, 64))
      const params = cipher(
        Buffer.concat([secret.subarray(0, 16), hash.subarray(16, 32)]),
        Buffer.concat([hash.subarray(0, 4), secret.subarray(20, 32)]),
      ).update(packet.subarray(96, 256))
      if (!sha256(params).equals(hash)) return void socket.destroy()
      const write = cipher(params.subarray(0, 32), params.subarray(64, 80))
      session = {
        read: cipher(params.subarray(32, 64), params.subarray(80, 96)),
        send: (payload) => {
          const nonce = randomBytes(32)
          const body = Buffer.concat([nonce, payload, sha256(nonce, payload)])
          const length = Buffer.alloc(4)
          length.writeUInt32LE(body.length)
          socket.write(write.update(Buffer.concat([length, body])))
        },
      }
      session.send(Buffer.of())
    }
    const take = async (payload: Buffer): Promise<void> => {
      if (payload.length < 36 || payload.readUInt32LE(0) !== 0xb48bf97a) return
      const reply = await answer(readBytes(readBytes(payload, 36), 4))
      if (mode !== 'up') return
      session!.send(tagged(0x0fac8416, payload.subarray(4, 36), tlBytes(reply)))
    }
    socket.on('error', () => {})
    socket.on('data', (given) => {
      const chunk = given as Buffer
      bytes = Buffer.concat([bytes, session ? session.read.update(chunk) : chunk])
      if (!session) {
        if (bytes.length < 256) return
        const rest = bytes.subarray(256)
        handshake(bytes.subarray(0, 256))
        bytes = session
          ? Buffer.from((session as { read: ReturnType<typeof cipher> }).read.update(rest))
          : rest
      }
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32LE(0)) {
        const end = 4 + bytes.readUInt32LE(0)
        void take(bytes.subarray(36, end - 32))
        bytes = bytes.subarray(end)
      }
    })
  }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    if (mode === 'down') return void socket.destroy()
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    key,
    trusted: () => blocks.find({ workchain: -1, shard: 1n << 63n, seqno: 1 })!.id,
    tamper: (next) => {
      change = next
    },
    setMode: (next) => {
      mode = next
      if (next === 'down') for (const socket of sockets) socket.destroy()
    },
    requests,
    stop: async () => {
      blocks.stop()
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
