import { zstdDecompressSync } from 'node:zlib'
import { createCryptoHost } from './host-crypto.ts'
import { createStorageHost } from './host-storage.ts'
import { createAllocator, type HostContext, put, putSpan, readSpan } from './memory.ts'
import type { Overlay } from './state.ts'

/** A Substrate runtime: the chain's own code. */
export type Runtime = {
  /** Calls an entry; throws when the runtime gives up (a trap), with what it said. */
  call(entry: string, input: Uint8Array, storage: Overlay): Uint8Array
}

const zstdMark = '52bc537646db8e05'
// An instance that has grown beyond this is not kept.
const mostKeptBytes = 64 << 20
// Runtimes since 2024 import it. There each call gets a new instance: not all of them run in a used one.
const proofSize = 'ext_storage_proof_size_storage_proof_size_version_1'

/** The code as it is compiled; chains store it packed. */
export function unpackCode(code: Uint8Array): Uint8Array {
  const bytes = Buffer.from(code)
  const isPacked = bytes.subarray(0, 8).toString('hex') === zstdMark
  return Uint8Array.from(isPacked ? zstdDecompressSync(bytes.subarray(8)) : bytes)
}

/** Compiles the code of a chain. */
export function loadRuntime(code: Uint8Array): Runtime {
  const module = new WebAssembly.Module(unpackCode(code) as Uint8Array<ArrayBuffer>)
  const imports = WebAssembly.Module.imports(module)
  const isReusable = !imports.some(({ name }) => name === proofSize)
  let kept: Instance | undefined

  return {
    call: (entry, input, storage) => {
      const instance = kept ?? createInstance(module, imports)
      // What traps leaves its stack as it was: such an instance is not used again.
      kept = undefined
      const output = instance.call(entry, input, storage)
      if (isReusable && instance.size() <= mostKeptBytes) kept = instance
      return output
    },
  }
}

type Instance = {
  call(entry: string, input: Uint8Array, storage: Overlay): Uint8Array
  size(): number
}

type Entry = (pointer: number, length: number) => bigint

function createInstance(
  module: WebAssembly.Module,
  imports: WebAssembly.ModuleImportDescriptor[],
): Instance {
  const own = imports.some(({ kind }) => kind === 'memory')
    ? new WebAssembly.Memory({ initial: 64 })
    : undefined
  // Filled in below: the memory is there only after the instance, the storage only at a call.
  const context = {} as HostContext
  let said: string[] = []
  const host: Record<string, (...args: never[]) => unknown> = {
    ...createStorageHost(context),
    ...createCryptoHost(context),
    ...createMiscHost(context, (text) => said.push(text)),
  }
  const env: Record<string, WebAssembly.ImportValue> = own ? { memory: own } : {}
  for (const { kind, name } of imports)
    if (kind === 'function')
      env[name] = (host[name] ??
        (() => {
          throw new Error(`the host function ${name} is not provided`)
        })) as () => unknown
  const { exports } = new WebAssembly.Instance(module, { env })
  const memory = own ?? (exports.memory as WebAssembly.Memory)
  const heapBase = Number((exports.__heap_base as WebAssembly.Global).value)
  const pristine = Uint8Array.from(new Uint8Array(memory.buffer, 0, heapBase))

  return {
    size: () => memory.buffer.byteLength,
    call: (entry, input, storage) => {
      const run = exports[entry] as Entry | undefined
      if (!run) throw new Error(`the runtime has no ${entry}`)
      new Uint8Array(memory.buffer, 0, heapBase).set(pristine)
      Object.assign(context, { memory, storage, allocator: createAllocator(memory, heapBase) })
      said = []
      try {
        const output = run(put(context, input), input.length)
        return Uint8Array.from(readSpan(context, output))
      } catch (error) {
        throw new RuntimeTrapError(`${entry}: ${said.at(-1) ?? error}`, { cause: error })
      }
    },
  }
}

/** The runtime refused to continue. */
export class RuntimeTrapError extends Error {
  override name = 'RuntimeTrapError'
}

function createMiscHost(context: HostContext, say: (text: string) => void) {
  const text = (span: bigint) => Buffer.from(readSpan(context, span)).toString()
  return {
    ext_allocator_malloc_version_1: (size: number) => context.allocator.allocate(size),
    ext_allocator_free_version_1: (pointer: number) => context.allocator.free(pointer),
    // Errors only: it is by them that a refusal can be understood.
    ext_logging_max_level_version_1: () => 1,
    ext_logging_log_version_1: (_level: number, _target: bigint, message: bigint) =>
      say(text(message)),
    ext_misc_print_utf8_version_1: (message: bigint) => say(text(message)),
    ext_misc_print_hex_version_1: () => {},
    ext_misc_print_num_version_1: () => {},
    ext_misc_runtime_version_version_1: () => putSpan(context, Uint8Array.of(0)),
    ext_offchain_index_set_version_1: () => {},
    ext_offchain_index_clear_version_1: () => {},
    // The largest number: no proof is recorded.
    [proofSize]: () => -1n,
  }
}
