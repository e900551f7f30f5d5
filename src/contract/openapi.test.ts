import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import { describe, expect, it } from 'vitest'
import { catalogue } from './catalogue.ts'
import { openapi } from './openapi.ts'

type Document = {
  info: { version: string }
  paths: Record<string, { post: { operationId: string; 'x-extension'?: true } }>
}

const document = openapi(catalogue, 'https://portolan.example') as Document

describe('the OpenAPI document of the whole catalogue', () => {
  it('is valid in Redocly', { timeout: 60_000 }, async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const source = JSON.stringify(document)
    expect(await lintFromString({ source, config, absoluteRef: 'openapi.json' })).toEqual([])
  })

  it('is valid in Spectral', { timeout: 60_000 }, async () => {
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset(rulesets.oas as Parameters<typeof spectral.setRuleset>[0])
    expect(await spectral.run(JSON.stringify(document))).toEqual([])
  })

  it('is version 1.0.0 and has one path per operation', () => {
    expect(document.info.version).toBe('1.0.0')
    expect(Object.keys(document.paths)).toEqual(
      catalogue.map(({ service, name }) => `/v1/${service}/${name}`),
    )
  })

  it('marks the operations beyond the specification', () => {
    const marked = Object.values(document.paths).filter(({ post }) => post['x-extension'])
    expect(marked).toHaveLength(catalogue.length - 95)
  })
})
