import { PassThrough } from 'node:stream'
import { finished } from 'node:stream/promises'
import { expect, test } from 'vitest'
import { watchScreen } from './watch.ts'

const text = ['1', '2', '3', '4', '5'].join('\n')

/** Draws until the text was read so often, each time because the window changes its size. */
async function drawn(window: { rows?: number; isTTY?: boolean }, times: number): Promise<string> {
  const stdout = Object.assign(new PassThrough(), window)
  let [written, reads] = ['', 0]
  stdout.setEncoding('utf8').on('data', (chunk: string) => {
    written += chunk
  })
  const stopped = watchScreen({ stdout }, 60_000, async () => {
    reads++
    // After the text was written, while the loop waits.
    setTimeout(() => {
      if (reads === times) process.emit('SIGINT')
      else stdout.emit('resize')
    }, 10)
    return text
  })
  await stopped
  stdout.end()
  await finished(stdout)
  return written
}

test('a text that is longer than the window ends with a count of what is left', async () => {
  const screen = await drawn({ isTTY: true, rows: 3 }, 1)
  expect(screen).toBe('\u001b[H\u001b[2J1\n2\n… 3 more lines\n')
})

test('a window that is resized is drawn again at once', async () => {
  const screen = await drawn({ isTTY: true, rows: 5 }, 3)
  expect(screen.split('\u001b[H\u001b[2J').slice(1)).toEqual([text, text, `${text}\n`])
})

test('what is not a terminal gets whole texts', async () => {
  expect(await drawn({}, 1)).toBe(`${text}\n`)
})
