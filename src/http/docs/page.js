// Runs in the browser. Signs "Try it out" requests with the credential typed into the page, which
// stays in this page's memory and is gone with it.
const basePath = location.pathname.replace(/\/docs\/?$/, '')
const field = (id) => document.getElementById(id)

async function sign(secret, text) {
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, [
    'sign',
  ])
  const mac = await crypto.subtle.sign('HMAC', key, encoder.encode(text))
  return Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

let lastNonce = 0
function nextNonce() {
  lastNonce = Math.max(lastNonce + 1, Date.now() * 1000)
  return String(lastNonce)
}

async function signRequest(request) {
  const url = new URL(request.url, location.href)
  if (!url.pathname.startsWith(`${basePath}/v1/`)) return request
  const [api_key, api_secret] = ['api_key', 'api_secret'].map((id) => field(id).value.trim())
  if (!api_key || !api_secret) return request
  const nonce = nextNonce()
  const body = request.body ?? ''
  request.headers['x-api-key'] = api_key
  request.headers['x-api-nonce'] = nonce
  request.headers['x-api-signature'] = await sign(
    api_secret,
    `${nonce}${request.method.toUpperCase()}${url.pathname}${url.search}${body}`,
  )
  return request
}

/** The document as it reads well here: on this page's origin, one line for all failures. */
function readable(document) {
  for (const { post } of Object.values(document.paths)) {
    const content = post.requestBody.content['application/json']
    // Only what must be there: a form full of made-up optional fields is refused.
    content.example ??= exampleOf(content.schema)
    post.responses = { 200: post.responses[200], default: failure }
    if (post.description === post.summary) delete post.description
    if (post['x-extension']) post.summary += ' (extension)'
  }
  return { ...document, servers: [{ url: location.origin + basePath }] }
}

const failure = {
  description: `A failure, as \`application/problem+json\`. [Errors](${basePath}/docs/errors) explains each reason.`,
}

function exampleOf({ type, required = [], properties = {}, ...rest }) {
  const { enum: values, default: usual, items, oneOf } = rest
  if (oneOf) return exampleOf(oneOf[0])
  if (usual !== undefined) return usual
  if (values) return values[0]
  if (type === 'object')
    return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {})]))
  if (type === 'array') return [exampleOf(items ?? {})]
  return { integer: 0, number: 0, boolean: false }[type] ?? ''
}

async function show() {
  // Browsers offer WebCrypto on https and on loopback only.
  if (!globalThis.crypto?.subtle) field('insecure').hidden = false
  const answer = await fetch(`${basePath}/openapi.json`)
  globalThis.SwaggerUIBundle({
    spec: readable(await answer.json()),
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'none',
    defaultModelsExpandDepth: -1,
    tryItOutEnabled: true,
    filter: true,
    validatorUrl: null,
    requestInterceptor: signRequest,
  })
}

show()
