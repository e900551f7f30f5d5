import { readFile, writeFile } from 'node:fs/promises'

// A mirror that lacks the binaries of other platforms makes npm leave them out of the lock file, and
// `npm ci` then refuses the file on every machine. This puts the missing entries back: name, version
// and platform, which is all that npm needs to pass over them here and to fetch them there.

type Entry = {
  version?: string
  optionalDependencies?: Record<string, string>
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optional?: true
  dev?: true
}
type Lock = { packages: Record<string, Entry> }

const url = new URL('../package-lock.json', import.meta.url)
const lock: Lock = JSON.parse(await readFile(url, 'utf8'))
const systems =
  'aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32|windows|wasi'
const processors =
  'arm64|aarch64|arm|armv7|ia32|loong64|mips64el|ppc64|riscv64|s390x|x64|amd64|wasm32'

function findEntry(from: string, name: string): Entry | undefined {
  let folder = from
  for (;;) {
    const path = folder ? `${folder}/node_modules/${name}` : `node_modules/${name}`
    const entry = lock.packages[path]
    if (entry) return entry
    if (!folder) return undefined
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))
    if (folder === from) return undefined
  }
}

function platformOf(name: string): Pick<Entry, 'os' | 'cpu' | 'libc'> | undefined {
  const os = new RegExp(`(?:^|[-/])(${systems})(?=-|$)`).exec(name)?.[1]
  const cpu = new RegExp(`(?:^|[-/])(${processors})`).exec(name)?.[1]
  if (!os && !cpu) return undefined
  const libc = /musl/.test(name) ? 'musl' : /linux.*gnu/.test(name) ? 'glibc' : undefined
  const renamed = { windows: 'win32', aarch64: 'arm64', amd64: 'x64', armv7: 'arm' }
  const known = (word: string) => renamed[word as keyof typeof renamed] ?? word
  return {
    ...(cpu && { cpu: [known(cpu)] }),
    ...(libc && { libc: [libc] }),
    ...(os && os !== 'wasi' && { os: [known(os)] }),
  }
}

let added = 0
for (const [path, { optionalDependencies = {}, dev }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (findEntry(path, name)) continue
    const platform = platformOf(name)
    if (!platform || !/^\d/.test(version)) {
      console.error(`${path} wants ${name}@${version}, which is not in the lock file`)
      continue
    }
    const place = lock.packages[`node_modules/${name}`] ? `${path}/node_modules/` : 'node_modules/'
    lock.packages[`${place}${name}`] = { version, ...platform, ...(dev && { dev }), optional: true }
    added++
  }
}
const [root, ...rest] = Object.entries(lock.packages)
rest.sort(([a], [b]) => (a < b ? -1 : 1))
lock.packages = Object.fromEntries([root!, ...rest])
await writeFile(url, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added} entries added`)
