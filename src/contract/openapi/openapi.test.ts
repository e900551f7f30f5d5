import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { type Shape, sampleOf, validRequest } from '../../../test/http/sample-requests.ts'
import { requestSchema } from '../operation.ts'
import { catalogue } from '../operations/catalogue.ts'
import { notificationTypes, operationalNotificationType } from '../records/states.ts'
import { createCheck } from '../validate.ts'
import { openapi } from './openapi.ts'

type Document = {
  info: { version: string }
  paths: Record<
    string,
    {
      post: {
        operationId: string
        description: string
        requestBody: { content: { 'application/json': { schema: TSchema } } }
        'x-extension'?: true
        responses: Record<number, { headers: object }>
      }
    }
  >
  webhooks: object
  components: { responses: Record<string, { headers: object }> }
}

const document = openapi(catalogue, 'https://portolan.example') as Document

describe('the OpenAPI document of the whole catalogue', () => {
  it('is valid in Redocly', { timeout: 60_000 }, async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const source = JSON.stringify(document)
    const found = await lintFromString({ source, config, absoluteRef: 'openapi.json' })
    expect(found.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
  })

  it('is valid in Spectral', { timeout: 60_000 }, async () => {
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset(rulesets.oas as Parameters<typeof spectral.setRuleset>[0])
    const found = await spectral.run(JSON.stringify(document))
    expect(found.map(({ message, path }) => `${path.join('.')}: ${message}`)).toEqual([])
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

  it('bounds every text of a request, and every integer is an int64', () => {
    const loose: string[] = []
    walk(document, (schema, path) => {
      if (schema.type === 'integer' && schema.format !== 'int64') loose.push(path)
      const isBounded = schema.maxLength !== undefined || schema.enum !== undefined
      const isRequest = path.includes('/requestBody/') && path.startsWith('/paths/')
      if (schema.type === 'string' && isRequest && !isBounded) loose.push(path)
    })
    expect(loose).toEqual([])
  })

  it('has the headers of rate limits on every answer', () => {
    const limits = ['RateLimit', 'RateLimit-Policy']
    for (const { post } of Object.values(document.paths))
      expect(Object.keys(post.responses[200]!.headers)).toEqual(expect.arrayContaining(limits))
    const problems = Object.entries(document.components.responses)
    for (const [name, { headers }] of problems) {
      expect(Object.keys(headers)).toEqual(expect.arrayContaining(limits))
      expect('Retry-After' in headers).toBe(/429|503/.test(name))
    }
  })

  it('shows fields that exclude each other as alternatives', () => {
    const alternatives: Record<string, string[]> = {}
    walk(document, ({ oneOf }, path) => {
      if (oneOf) alternatives[path.split('/').at(-1)!] = oneOf.map(({ title }) => title)
    })
    expect(alternatives).toEqual({
      token_payload: ['erc20', 'erc721', 'erc1155'],
      asset_metadata: ['erc20', 'erc721', 'erc1155', 'none'],
      transfer_metadata: ['erc20', 'erc721', 'erc1155', 'none'],
      0: ['erc20', 'erc721', 'erc1155', 'none'],
    })
  })

  it('accepts two fields together exactly where the check of the service does', () => {
    let pairs = 0
    for (const entry of catalogue) {
      const path = document.paths[`/v1/${entry.service}/${entry.name}`]!
      const schema = path.post.requestBody.content['application/json'].schema
      const documented = Compile(schema)
      const check = createCheck(entry)
      const properties = (schema as { properties?: Record<string, Shape> }).properties ?? {}
      for (const [one, other] of entry.row.exclusive ?? []) {
        pairs++
        expect(path.post.description).toContain(`Give \`${one}\` or \`${other}\`, not both.`)
        for (const flag of [true, false]) {
          const body = { ...validRequest(entry) }
          for (const name of [one, other])
            body[name] = properties[name]?.type === 'boolean' ? flag : sampleOf(properties[name]!)
          const isAllowed = Object.values(body).includes(false)
          expect(documented.Check(body), `${entry.name} ${one} ${other}`).toBe(isAllowed)
          if (isAllowed) check(body)
          else
            expect(() => check(body)).toThrow(
              expect.objectContaining({
                errors: [{ field: other, reason: 'NOT_ALLOWED', detail: `Not with ${one}.` }],
              }),
            )
        }
      }
    }
    // Of four wallet services each: histories and sinks; and of credentials.
    expect(pairs).toBe(4 * 3 + 1)
  })

  it('never excludes a field with a default: clients send defaults', () => {
    const withDefault = catalogue.flatMap(({ service, name, row }) => {
      const { properties } = requestSchema(row, service)
      return (row.exclusive ?? [])
        .flat()
        .filter(
          (field) =>
            ![undefined, false].includes((properties[field] as { default?: boolean }).default),
        )
        .map((field) => `${service}/${name} ${field}`)
    })
    expect(withDefault).toEqual([])
  })

  it('has the notifications of the services that it covers', () => {
    expect(Object.keys(document.webhooks)).toEqual([
      ...Object.values(notificationTypes),
      operationalNotificationType,
    ])
    const some = catalogue.filter(({ service }) => service === 'admin' || service === 's')
    const { webhooks } = openapi(some, 'https://portolan.example') as Document
    expect(Object.keys(webhooks)).toEqual([notificationTypes.s, operationalNotificationType])
    const admin = catalogue.filter(({ service }) => service === 'admin')
    expect(openapi(admin, 'https://portolan.example')).not.toHaveProperty('webhooks')
  })
})

type Schema = {
  type?: string
  format?: string
  maxLength?: number
  enum?: unknown[]
  oneOf?: { title: string }[]
}

function walk(value: unknown, visit: (schema: Schema, path: string) => void, path = ''): void {
  if (typeof value !== 'object' || value === null) return
  if (path.includes('/schema')) visit(value, path)
  for (const [key, inner] of Object.entries(value)) walk(inner, visit, `${path}/${key}`)
}
