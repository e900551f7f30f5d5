import type { Writable } from 'node:stream'

/** Writes large answers in parts. */
export type LargeAnswers = {
  /**
   * Writes the texts one after the other, part by part, each when it is the tenant's turn and the client has taken what was written before. Then
   * calls `done` with what the last write returned. Nothing more happens when the client leaves.
   */
  write(
    to: Writable,
    answer: { tenant: string; texts: readonly string[]; encoding: 'latin1' | 'utf8' },
    done: (isFlushed: boolean) => void,
  ): void
}

/**
 * Longer answers are written in parts of this length, each of which takes 0.2 ms. In parts 1 MiB costs 1.39 ms of CPU, in
 * one piece 1.32 ms; parts of half the length cost 1.44 ms.
 */
export const partLength = 130_048

/**
 * Writes one part in each turn of the event loop, in turns of the tenants. A tenant that reads 2 MB of logs on 64
 * connections at once blocked the event loop for 200 ms otherwise, and with it all other tenants.
 */
export function createLargeAnswers(): LargeAnswers {
  /** What each tenant has to write; the first one is next. */
  const queues = new Map<string, (() => void)[]>()
  let isRunning = false

  const runOne = () => {
    for (const [tenant, [part, ...rest]] of queues) {
      queues.delete(tenant)
      if (rest.length > 0) queues.set(tenant, rest)
      part?.()
      break
    }
    isRunning = queues.size > 0
    if (isRunning) setImmediate(runOne)
  }

  const enqueue = (tenant: string, part: () => void) => {
    const queue = queues.get(tenant)
    if (queue) queue.push(part)
    else queues.set(tenant, [part])
    if (isRunning) return
    isRunning = true
    setImmediate(runOne)
  }

  return {
    write(to, { tenant, texts, encoding }, done) {
      const nextPart = createParts(texts)
      const writeNext = () => {
        if (to.destroyed) return
        const { part, isLast } = nextPart()
        const isFlushed = to.write(part, encoding)
        if (isLast) return done(isFlushed)
        if (isFlushed) enqueue(tenant, writeNext)
        else to.once('drain', () => enqueue(tenant, writeNext))
      }
      enqueue(tenant, writeNext)
    },
  }
}

/** The next part of some texts. They are not joined, which would copy them. */
function createParts(texts: readonly string[]): () => { part: string; isLast: boolean } {
  let index = 0
  let at = 0
  return () => {
    let part = ''
    while (index < texts.length && part.length < partLength) {
      const text = texts[index] as string
      const end = endOfPart(text, at + partLength - part.length)
      part += text.slice(at, end)
      at = end
      if (at < text.length) break
      index++
      at = 0
    }
    return { part, isLast: index === texts.length }
  }
}

/** Not between the two halves of a character. */
const endOfPart = (text: string, end: number): number => {
  if (end >= text.length) return text.length
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end
}
