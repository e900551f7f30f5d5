import type { JsonSchema } from './schema.ts'

/** One operation as the reference of the service describes it. */
export type OperationDoc = {
  /** `c/ListWallets`: unique in an installation. */
  key: string
  chain: string
  name: string
  path: string
  summary: string
  description: string
  tag: string
  isExtension: boolean
  creates: boolean
  schema: JsonSchema
  example: unknown
  answer: unknown
}

/** All operations of the installation. */
export type Reference = {
  operations: readonly OperationDoc[]
  find(chain: string, name: string): OperationDoc | undefined
}

/** Reads the reference once, when a page first needs it. */
export function createReference(baseUrl: string): { load(): Promise<Reference> } {
  let loading: Promise<Reference> | undefined
  return {
    load: () => {
      loading ??= fetch(`${baseUrl}/openapi.json`, { signal: AbortSignal.timeout(30_000) })
        .then((answer) => {
          if (!answer.ok) throw new Error(`The API reference answered ${answer.status}.`)
          return answer.json() as Promise<OpenApi>
        })
        .then(readReference)
        .catch((error: unknown) => {
          loading = undefined
          throw error
        })
      return loading
    },
  }
}

type Media = { content?: { 'application/json'?: { schema?: JsonSchema; example?: unknown } } }
type OpenApi = {
  paths: Record<
    string,
    {
      post?: {
        summary?: string
        description?: string
        tags?: readonly string[]
        parameters?: readonly unknown[]
        'x-extension'?: boolean
        requestBody?: Media
        responses?: Record<string, Media>
      }
    }
  >
}

/** The operations of an OpenAPI document. */
export function readReference(document: OpenApi): Reference {
  const operations = Object.entries(document.paths).flatMap(([path, { post }]) => {
    const [, chain, name] = /\/v1\/([^/]+)\/([A-Z][A-Za-z0-9]*)$/.exec(path) ?? []
    if (!post || !chain || !name) return []
    const request = post.requestBody?.content?.['application/json']
    const summary = post.summary ?? name
    return {
      key: `${chain}/${name}`,
      chain,
      name,
      path,
      summary,
      description: post.description ?? summary,
      tag: post.tags?.[0] ?? chain,
      isExtension: post['x-extension'] === true,
      creates: (post.parameters?.length ?? 0) > 0,
      schema: request?.schema ?? {},
      example: request?.example,
      answer: post.responses?.['200']?.content?.['application/json']?.example,
    }
  })
  const byKey = new Map(operations.map((operation) => [operation.key, operation]))
  return { operations, find: (chain, name) => byKey.get(`${chain}/${name}`) }
}
