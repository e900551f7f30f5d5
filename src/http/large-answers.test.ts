import { Writable } from 'node:stream'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createLargeAnswers, partLength } from './large-answers.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Takes what is written at once, as a client that reads does. */
const reader = (name: string, written: string[]) =>
  new Writable({
    highWaterMark: 2 * partLength,
    write: (chunk: Buffer, _encoding, done) => {
      written.push(`${name}${chunk.length}`)
      done()
    },
  })

it('one part is written in each turn of the event loop, however many answers there are', async () => {
  const large = createLargeAnswers()
  const written: string[] = []
  const text = 'x'.repeat(3 * partLength)
  for (let number = 0; number < 10; number++)
    large.write(reader('a', written), { tenant: 'a', texts: [text], encoding: 'latin1' }, () => {})
  for (let count = 0; count <= 30; count++) {
    expect(written.length).toBeLessThanOrEqual(count)
    await turn()
  }
  await expect.poll(() => written.length).toBe(30)
})

it('tenants write in turn: ten answers of one do not delay that of another', async () => {
  const large = createLargeAnswers()
  const written: string[] = []
  const text = 'x'.repeat(4 * partLength)
  for (let number = 0; number < 10; number++)
    large.write(reader('a', written), { tenant: 'a', texts: [text], encoding: 'latin1' }, () => {})
  const ended = new Promise<void>((resolve) => {
    const done = () => resolve()
    large.write(reader('b', written), { tenant: 'b', texts: [text], encoding: 'latin1' }, done)
  })
  await ended
  expect(written.filter((part) => part.startsWith('a')).length).toBeLessThanOrEqual(5)
})

it('waits for a client that does not read, and stops for one that has left', async () => {
  const large = createLargeAnswers()
  const taken: (() => void)[] = []
  const slow = new Writable({
    highWaterMark: 1,
    write: (_chunk, _encoding, done) => void taken.push(done),
  })
  let ends = 0
  const text = 'x'.repeat(3 * partLength)
  large.write(slow, { tenant: 'a', texts: [text], encoding: 'latin1' }, () => ends++)
  for (let turns = 0; turns < 5; turns++) await turn()
  expect(taken.length).toBe(1)
  taken[0]!()
  await expect.poll(() => taken.length).toBe(2)
  slow.destroy()
  taken[1]!()
  for (let turns = 0; turns < 5; turns++) await turn()
  expect({ ends, parts: taken.length }).toEqual({ ends: 0, parts: 2 })
})

it('the parts of a text are its bytes', async () => {
  const some = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 })
  const holds = async (unit: string) => {
    const text = unit.repeat(Math.ceil((2.5 * partLength) / unit.length))
    const texts = [unit, text, '', unit]
    const chunks: Buffer[] = []
    const to = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        chunks.push(chunk)
        done()
      },
    })
    await new Promise((resolve) =>
      createLargeAnswers().write(to, { tenant: 'a', texts, encoding: 'utf8' }, resolve),
    )
    expect(Buffer.concat(chunks).equals(Buffer.from(texts.join('')))).toBe(true)
  }
  await fc.assert(fc.asyncProperty(some, holds), { numRuns: 30 })
})
