import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { openapi } from '../../contract/openapi/openapi.ts'
import { responseSchema } from '../../contract/operation.ts'
import { catalogue } from '../../contract/operations/catalogue.ts'
import { createProjection } from '../../contract/project.ts'
import { createCheck } from '../../contract/validate.ts'
import { examplesWith, recordedExamples } from './routes.ts'

// After a change of the contract: start a demo and run `npm run record-examples`.
describe('the recorded examples', () => {
  it('are one for every operation, in the order of the catalogue', () => {
    expect(Object.keys(recordedExamples)).toEqual(
      catalogue.map(({ service, name }) => `${service}/${name}`),
    )
  })

  it('are requests that the service accepts', () => {
    for (const entry of catalogue) {
      const { request } = recordedExamples[`${entry.service}/${entry.name}`]!
      expect(() => createCheck(entry)(request)).not.toThrow()
    }
  })

  it('are answers with every declared field and no other', () => {
    const wrong: string[] = []
    for (const entry of catalogue) {
      const name = `${entry.service}/${entry.name}`
      const { answer } = recordedExamples[name]!
      if (!Compile(responseSchema(entry.row, entry.service)).Check(answer)) wrong.push(name)
      expect([name, createProjection(entry)(answer)]).toEqual([name, answer])
    }
    expect(wrong).toEqual([])
  })

  it('show no secret', () => {
    const secrets = JSON.stringify(recordedExamples).match(/(?:plk_|pls_|whsec_)[^"]*/g)!
    expect(secrets.length).toBeGreaterThan(5)
    for (const secret of secrets) expect(secret).toMatch(/_EXAM/)
  })

  it('have something in every list', () => {
    const empty = Object.entries(recordedExamples).flatMap(([name, { answer }]) =>
      Object.entries(answer).flatMap(([field, value]) =>
        Array.isArray(value) && value.length === 0 ? [`${name}.${field}`] : [],
      ),
    )
    expect(empty).toEqual([])
  })

  it('keep their answer where the installation has a request of its own', () => {
    const request = { wallet_id: 'mine' }
    const examples = examplesWith({ 'c/GetWallet': request })
    const { answer } = recordedExamples['c/GetWallet']!
    expect(examples['c/GetWallet']).toEqual({ request, answer })
    expect(examples['t/GetWallet']).toBe(recordedExamples['t/GetWallet'])
  })
})

describe('the OpenAPI document with them', () => {
  const source = JSON.stringify(openapi(catalogue, 'https://portolan.example', recordedExamples))

  it('is valid in Redocly', { timeout: 120_000 }, async () => {
    const config = await createConfig({
      extends: ['recommended'],
      rules: { 'no-invalid-media-type-examples': 'error' },
    })
    const lint = (text: string) =>
      lintFromString({ source: text, config, absoluteRef: 'openapi.json' })
    const found = await lint(source)
    expect(found.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
    const damaged = source.replace('"example":{"organization_id":"', '"example":{"organization":"')
    expect(await lint(damaged)).not.toEqual([])
  })

  it('is valid in Spectral', { timeout: 120_000 }, async () => {
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset(rulesets.oas as Parameters<typeof spectral.setRuleset>[0])
    const found = await spectral.run(source)
    expect(found.map(({ message, path }) => `${path.join('.')}: ${message}`)).toEqual([])
  })
})
