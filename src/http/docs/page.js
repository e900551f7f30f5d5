// Runs in the browser. Signs "Try it out" requests with the credential typed into the page, which
// stays in this page's memory and is gone with it.
const field = (id) => document.getElementById(id)

async function sign(secret, text) {
  // Browsers offer WebCrypto on https and on loopback only.
  if (!globalThis.crypto?.subtle) throw new Error('Open this page over https to try operations.')
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
  if (!url.pathname.startsWith('/v1/')) return request
  const nonce = nextNonce()
  const body = request.body ?? ''
  request.headers['x-api-key'] = field('api_key').value.trim()
  request.headers['x-api-nonce'] = nonce
  request.headers['x-api-signature'] = await sign(
    field('api_secret').value.trim(),
    `${nonce}${request.method.toUpperCase()}${url.pathname}${url.search}${body}`,
  )
  return request
}

globalThis.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  filter: true,
  requestInterceptor: signRequest,
})
