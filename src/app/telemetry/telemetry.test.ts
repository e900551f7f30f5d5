import { describe, expect, it, onTestFinished } from 'vitest'
import { inSpan } from '../../lib/tracing.ts'
import { startTelemetry } from './start.ts'
import { openTelemetry, type TelemetryOptions } from './telemetry.ts'

const open = async (options: Partial<TelemetryOptions> = {}) => {
  const telemetry = await openTelemetry({
    // Nothing listens on the port for discarded data.
    ...{ url: 'http://127.0.0.1:9', headers: {}, serviceName: 'test', version: '1' },
    ...{ traceShare: 1, isLogSent: false, ...options },
  })
  onTestFinished(telemetry.stop)
  return telemetry
}

describe('tracing', () => {
  it('is off without an address, and nothing is loaded', async () => {
    const telemetry = { headers: {}, service_name: 'x', trace_share: 1, logs: true }
    const own = () => {
      throw new Error('something was started')
    }
    const config = { telemetry } as Parameters<typeof startTelemetry>[0]
    expect(await startTelemetry(config, { env: {}, version: '1' }, own)).toBeUndefined()
  })

  it('computes the span of a block alike in every process, and of each installation another one', async () => {
    const [one, two] = [await open(), await open()]
    const span = one.tracing.blockSpan(1, 100)
    expect(span).toEqual({
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      span_id: expect.stringMatching(/^[0-9a-f]{16}$/),
    })
    expect(two.tracing.blockSpan(1, 100)).toEqual(span)
    expect(two.tracing.blockSpan(1, 101)).not.toEqual(span)
    const other = await open({ serviceName: 'other' })
    expect(other.tracing.blockSpan(1, 100)).not.toEqual(span)
  })

  it('traces the share of the blocks that is set, and a larger share traces these too', async () => {
    const [few, more] = [await open({ traceShare: 0.1 }), await open({ traceShare: 0.3 })]
    const blocks = Array.from({ length: 2_000 }, (_, number) => number)
    const traced = blocks.filter((number) => few.tracing.blockSpan(1, number))
    expect(traced.length).toBeGreaterThan(120)
    expect(traced.length).toBeLessThan(280)
    expect(traced.every((number) => more.tracing.blockSpan(1, number))).toBe(true)
    const none = await open({ traceShare: 0 })
    expect(none.tracing.isSampled()).toBe(false)
    expect(none.tracing.blockSpan(1, 1)).toBeUndefined()
  })

  it('knows the trace inside of a span only, also after a wait and in a bound callback', async () => {
    const { tracing } = await open()
    expect(tracing.open('part')).toBeUndefined()
    const span = tracing.begin({ name: 'root' })
    let later = (_: string) => {}
    const seen: (string | undefined)[] = []
    await inSpan(span, async () => {
      await new Promise(setImmediate)
      later = tracing.bind(() => void seen.push(tracing.traceId()))
      expect(tracing.open('part')?.trace_id).toBe(span.trace_id)
    })
    expect(tracing.traceId()).toBeUndefined()
    later('')
    expect(seen).toEqual([span.trace_id])
  })

  it('delays no stop where the collector is unreachable', async () => {
    const telemetry = await open({ isLogSent: true })
    for (let made = 0; made < 100; made++) telemetry.tracing.begin({ name: 'root' }).end()
    telemetry.onLine?.('{"level":"info","time":"2026-01-31T12:00:00.000Z","msg":"x"}\n')
    telemetry.onLine?.('no JSON\n')
    const begun = performance.now()
    await telemetry.stop()
    expect(performance.now() - begun).toBeLessThan(10_000)
  })
})
