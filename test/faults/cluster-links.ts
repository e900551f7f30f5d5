import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../helpers/free-port.ts'

/** Which way the bytes of a cut connection are lost: to the server, from it, or both. */
export type Way = 'both' | 'to' | 'from'

/** A way to a server that can be cut: what goes over it then goes nowhere, and neither end gets an error. */
export type Link = {
  port: number
  /** For all connections, or for those of one process (Linux). */
  cut(way: Way, pid?: number): Promise<void>
  heal(): void
  /** Refuses connections until `open`, as a port without a process does. */
  shut(): void
  open(): Promise<void>
  stop(): void
}

type Connection = { socket: Socket; target: Socket; cut: Way | undefined }

/** Listens on the loopback interface and passes bytes on. */
export async function createLink(to: { port: number } | { path: string }): Promise<Link> {
  const port = await freePort()
  const connections = new Set<Connection>()
  let cut: { way: Way; pid: number | undefined } | undefined
  const wayOf = async (socket: Socket): Promise<Way | undefined> => {
    if (cut?.pid === undefined) return cut?.way
    const { way, pid } = cut
    return (await portsFrom(pid)).has(socket.remotePort ?? 0) ? way : undefined
  }
  const server = createServer((socket) => {
    const target = connect(to as { port: number })
    const connection: Connection = { socket, target, cut: undefined }
    connections.add(connection)
    for (const one of [socket, target]) {
      one.on('error', () => {})
      one.on('close', () => {
        // A partition is silent: neither end gets an error before it is over.
        if (connection.cut) return
        connections.delete(connection)
        ;(one === socket ? target : socket).destroy()
      })
    }
    const pass = () => {
      socket.on('data', (bytes) => {
        if (!connection.cut || connection.cut === 'from') target.write(bytes)
      })
      target.on('data', (bytes) => {
        if (!connection.cut || connection.cut === 'to') socket.write(bytes)
      })
    }
    if (!cut) return pass()
    void wayOf(socket).then((way) => {
      if (cut) connection.cut = way
      pass()
    })
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const reset = (some: Iterable<Connection>) => {
    for (const connection of [...some]) {
      connections.delete(connection)
      connection.socket.destroy()
      connection.target.destroy()
    }
  }
  return {
    port,
    shut: () => void server.close(),
    open: async () => {
      if (server.listening) return
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    cut: async (way, pid) => {
      cut = { way, pid }
      for (const connection of [...connections]) connection.cut = await wayOf(connection.socket)
    },
    heal: () => {
      cut = undefined
      // Bytes were lost: what is left of these connections is of no use.
      reset([...connections].filter((connection) => connection.cut))
    },
    stop: () => {
      reset(connections)
      server.close()
    },
  }
}

/** The ports that a process has its ends of TCP connections at. */
async function portsFrom(pid: number): Promise<Set<number>> {
  const folder = `/proc/${pid}/fd`
  const names = await readdir(folder).catch(() => [])
  const targets = await Promise.all(
    names.map((name) => readlink(`${folder}/${name}`).catch(() => '')),
  )
  const inodes = new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []))
  const table = await readFile(`/proc/${pid}/net/tcp`, 'utf8').catch(() => '')
  const ports = table.split('\n').flatMap((line) => {
    const [, local = '', , , , , , , , inode = ''] = line.trim().split(/\s+/)
    return inodes.has(inode) ? Number.parseInt(local.split(':')[1] ?? '', 16) : []
  })
  return new Set(ports)
}
