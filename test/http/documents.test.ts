import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import spectralRulesets from '@stoplight/spectral-rulesets'
import { describe, expect, it } from 'vitest'
import { errors } from '../../src/contract/errors/errors.ts'
import { hasHandler } from '../../src/domain/handlers.ts'
import { startTestApp } from '../helpers/app.ts'
import { operations, validRequest } from './sample-requests.ts'

const service = await startTestApp()
const tenant = await service.createTenant()
const get = (path: string) => service.send(path, { method: 'GET' })
const { text, json: document } = await get('/openapi.json')

describe('every document', () => {
  it.each([
    '/openapi.json',
    '/docs',
    '/docs/errors',
    '/docs/errors/INTERNAL',
    '/docs/assets/page.css',
  ])(
    '%s is sent compressed where that is accepted, and not sent again to those who have it',
    async (path) => {
      const ask = (headers: Record<string, string>) =>
        service.send(path, { method: 'GET', headers })
      const plain = await ask({})
      expect(plain.status).toBe(200)
      expect(plain.headers['content-encoding']).toBeUndefined()
      const zipped = await service.send(path, {
        method: 'HEAD',
        headers: { 'accept-encoding': 'br;q=1, gzip;q=0.5' },
      })
      expect(zipped.headers['content-encoding']).toBe('gzip')
      expect(Number(zipped.headers['content-length'])).toBeLessThan(plain.text.length)
      expect((await ask({ 'accept-encoding': 'gzip;q=0' })).text).toBe(plain.text)
      const etag = `${plain.headers.etag}`
      expect(zipped.headers.etag).toBe(etag)
      for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await ask({ 'if-none-match': tag })
        expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag])
      }
      expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200)
    },
  )
})

describe('/openapi.json', () => {
  it('is an OpenAPI 3.1 document of version 1.0.0 at the address of the service', async () => {
    expect(document.openapi).toMatch(/^3\.1\./)
    expect(document.info.version).toBe('1.0.0')
    expect(document.servers).toEqual([{ url: service.base_url }])
    expect((await get('/openapi.json')).headers['content-type']).toBe('application/json')
  })

  it('has no problem in the eyes of Redocly', async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: text, config, absoluteRef: 'openapi.json' })
    const said = problems.map(({ ruleId, message, severity }) => ({ severity, ruleId, message }))
    expect(said).toEqual([])
    const source = text.replace('"responses":', '"respnses":')
    expect(await lintFromString({ source, config, absoluteRef: 'openapi.json' })).not.toEqual([])
  })

  it('has no problem in the eyes of Spectral', async () => {
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset(spectralRulesets.oas as never)
    const problems = await spectral.run(document)
    expect(problems.map(({ code, message, path }) => ({ code, message, path }))).toEqual([])
    const damaged = structuredClone(document)
    damaged.paths['/v1/admin/GetRateLimit'].post.responses = { 200: {} }
    expect(await spectral.run(damaged)).not.toEqual([])
  })

  it('has exactly the operations that work on the chains of the installation', async () => {
    const works: string[] = []
    for (const [name, entry] of operations) {
      const { status } = await service.call(tenant.admin, name, validRequest(entry))
      if (status !== 501) works.push(`/v1/${name}`)
    }
    // This one has no chains.
    const offered = works.filter((path) => path.startsWith('/v1/admin/'))
    expect(Object.keys(document.paths).sort()).toEqual(offered.sort())
    expect(works.sort()).toEqual(
      operations
        .filter(([, entry]) => hasHandler(entry))
        .map(([name]) => `/v1/${name}`)
        .sort(),
    )
  })

  it('marks what goes beyond the specification', () => {
    for (const [name, { row }] of operations) {
      const path = document.paths[`/v1/${name}`]
      if (path) expect([name, path.post['x-extension']]).toEqual([name, row.extension])
    }
  })
})

it('every operation of the catalogue is built', () => {
  const missing = operations.filter(([, entry]) => !hasHandler(entry))
  expect(missing.map(([name]) => name)).toEqual([])
})

describe('the pages', () => {
  it('are where / leads to without a console', async () => {
    const bare = await startTestApp({ config: { server: { console: false } } })
    const { status, headers } = await bare.send('/', { method: 'GET' })
    expect([status, headers.location]).toEqual([302, '/docs'])
    const page = { method: 'GET', headers: { accept: 'text/html' } }
    expect((await bare.send('/wallets', page)).status).toBe(404)
    const { text: html } = await bare.send('/docs', page)
    const [, script] = /src="([^"]+)"/.exec(html) ?? []
    expect((await bare.send(`${script}`, { method: 'GET' })).status).toBe(200)
  })

  it('load everything they need from the service itself', async () => {
    for (const page of [
      ...['/docs', '/docs/api/c/ListWallets', '/docs/guide/decisions/events'],
      ...['/docs/errors', '/docs/errors/RATE_LIMITED'],
    ]) {
      const { status, headers, text: html } = await get(page)
      expect(status).toBe(200)
      expect(headers['content-type']).toBe('text/html; charset=utf-8')
      expect(headers['content-security-policy']).toContain("default-src 'none'")
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers['x-content-type-options']).toBe('nosniff')
      const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => String(link))
      expect(links.length).toBeGreaterThan(2)
      for (const link of links.filter((found) => found !== 'data:,')) {
        expect(link).toMatch(/^\//)
        expect([link, (await get(link)).status]).toEqual([link, 200])
      }
    }
  })

  it.each([['page.css', 'text/css']])('have the asset %s', async (name, type) => {
    const answer = await fetch(`${service.base_url}/docs/assets/${name}`)
    expect(answer.headers.get('content-type')).toContain(type)
    expect((await answer.text()).length).toBeGreaterThan(200)
  })

  it.each(Object.entries(errors))('explain the reason %s', async (reason, row) => {
    const { status, text: html } = await get(`/docs/errors/${reason}`)
    expect(status).toBe(200)
    expect(html).toContain(row.title)
    expect(html).toContain(`HTTP ${row.status}`)
    expect(html).not.toContain('undefined')
  })

  it('have every reason in their list', async () => {
    const { text: html } = await get('/docs/errors')
    for (const reason of Object.keys(errors)) expect(html).toContain(`/docs/errors/${reason}"`)
  })

  it('show nothing that the caller put into the address', async () => {
    const { text: html } = await get('/docs/errors/%3Cscript%3Ealert(1)%3C/script%3E')
    expect(html).not.toContain('script')
  })
})
