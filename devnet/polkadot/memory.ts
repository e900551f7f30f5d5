import type { Overlay } from './state.ts'

/** What the host functions work on during one call of the runtime. */
export type HostContext = {
  memory: WebAssembly.Memory
  storage: Overlay
  allocator: Allocator
}

/** Gives memory of the runtime to the runtime, which has no allocator of its own. */
export type Allocator = { allocate(size: number): number; free(pointer: number): void }

const smallestOrder = 3
const pageBytes = 65_536
const growPages = 64

/** Blocks in powers of two with lists of free ones; each is preceded by 8 bytes with its order. */
export function createAllocator(memory: WebAssembly.Memory, heapBase: number): Allocator {
  let top = (heapBase + 7) & ~7
  const free = Array.from({ length: 29 }, (): number[] => [])
  const ensure = (end: number) => {
    const missing = Math.ceil((end - memory.buffer.byteLength) / pageBytes)
    if (missing > 0) memory.grow(Math.max(missing, growPages))
  }
  return {
    allocate: (size) => {
      const order = Math.max(smallestOrder, 32 - Math.clz32(Math.max(size, 1) - 1))
      if (order > 28) throw new Error(`the runtime asks for ${size} bytes`)
      const reused = free[order]!.pop()
      if (reused !== undefined) return reused
      const pointer = top + 8
      top = pointer + 2 ** order
      ensure(top)
      new DataView(memory.buffer).setUint32(pointer - 8, order, true)
      return pointer
    },
    free: (pointer) => {
      const order = new DataView(memory.buffer).getUint32(pointer - 8, true)
      const list = free[order]
      if (!list || order < smallestOrder) throw new Error('the runtime frees what it does not have')
      list.push(pointer)
    },
  }
}

/** The bytes at a place. They are gone when the memory grows: copy what is kept. */
export const viewOf = ({ memory }: HostContext, pointer: number, length: number): Uint8Array =>
  new Uint8Array(memory.buffer, pointer >>> 0, length)

/** The bytes that a pointer and length in one number mean. */
export const readSpan = (context: HostContext, span: bigint): Uint8Array => {
  const bits = BigInt.asUintN(64, span)
  return viewOf(context, Number(bits & 0xffff_ffffn), Number(bits >> 32n))
}

/** Puts bytes into the runtime's memory. */
export const put = (context: HostContext, bytes: Uint8Array): number => {
  const pointer = context.allocator.allocate(bytes.length)
  viewOf(context, pointer, bytes.length).set(bytes)
  return pointer
}

/** Puts bytes there and gives pointer and length in one number. */
export const putSpan = (context: HostContext, bytes: Uint8Array): bigint =>
  BigInt.asIntN(64, (BigInt(bytes.length) << 32n) | BigInt(put(context, bytes)))
