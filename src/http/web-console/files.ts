import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A file of the built console, ready to be sent. */
export type ConsoleFile = {
  type: string
  etag: string
  /** Its name contains a hash of its content. */
  isImmutable: boolean
  plain: Buffer
  gzip: Buffer | undefined
  br: Buffer | undefined
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

// What these formats gain by compression is less than it costs.
const compressed = /^(?:image\/png|font\/woff2)/

/**
 * Reads the built console into memory, by the paths of its files. Only these files are ever served, so no path of a
 * request reaches the file system. Undefined where the console is not built.
 */
export async function readConsole(
  directory: string,
  /** Rewrites the page, whose links depend on the base path. */
  rewritePage: (html: string) => string,
): Promise<ReadonlyMap<string, ConsoleFile> | undefined> {
  const names = await listFiles(directory)
  if (!names.includes('index.html')) return undefined
  const files = new Map<string, ConsoleFile>()
  for (const name of names) {
    const type = types[extname(name)]
    if (type === undefined) continue
    const read = await readFile(join(directory, name))
    const isPage = name === 'index.html'
    const plain = isPage ? Buffer.from(rewritePage(read.toString('utf8'))) : read
    // The build writes compressed files beside the originals; the page is rewritten and has none.
    const beside = async (suffix: string) =>
      !isPage && names.includes(`${name}${suffix}`)
        ? await readFile(join(directory, `${name}${suffix}`))
        : undefined
    files.set(`/${name}`, {
      type,
      etag: `"${hash('sha256', plain, 'base64url').slice(0, 27)}"`,
      isImmutable: name.startsWith('assets/'),
      plain,
      gzip:
        (await beside('.gz')) ?? (compressed.test(type) ? undefined : await promisify(gzip)(plain)),
      br: await beside('.br'),
    })
  }
  return files
}

async function listFiles(directory: string): Promise<string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
}
