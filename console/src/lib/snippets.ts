import { toJson } from './format.ts'

/** One call, to be written in several languages. */
export type SnippetCall = {
  baseUrl: string
  /** The chain, or `admin`. */
  chain: string
  network?: string
  operation: string
  request: unknown
}

/** The languages of snippets. */
export const snippetLanguages = [
  ['curl', 'curl'],
  ['typescript', 'TypeScript'],
  ['python', 'Python'],
  ['go', 'Go'],
  ['cli', 'CLI'],
] as const

/** The call in a language. Keys come from the environment: a snippet is shared, a secret is not. */
export function snippetOf(language: string, call: SnippetCall): string {
  const { baseUrl, chain, network, operation, request } = call
  const at = network ? `${chain}/${network}` : chain
  const path = `${new URL(baseUrl).pathname.replace(/\/+$/, '')}/v1/${at}/${operation}`
  const { origin } = new URL(baseUrl)
  const body = toJson(request, 0)
  switch (language) {
    case 'typescript':
      return `import { createClient } from '@portolan/client'

const client = createClient({
  base_url: ${quote(baseUrl)},
  api_key: process.env.API_KEY,
  api_secret: process.env.API_SECRET,
})
const answer = await ${clientOf(chain, network)}.${operation}(${toJson(request)})
console.log(answer)
`
    case 'python':
      return `import hashlib, hmac, os, time, urllib.request

path = ${quote(path)}
body = ${pythonQuote(body)}
nonce = str(time.time_ns() // 1000)
signature = hmac.new(
    os.environ["API_SECRET"].encode(),
    (nonce + "POST" + path + body).encode(),
    hashlib.sha256,
).hexdigest()
request = urllib.request.Request(
    ${quote(origin)} + path,
    data=body.encode(),
    headers={
        "content-type": "application/json",
        "x-api-key": os.environ["API_KEY"],
        "x-api-nonce": nonce,
        "x-api-signature": signature,
    },
)
with urllib.request.urlopen(request, timeout=30) as answer:
    print(answer.read().decode())
`
    case 'go':
      return `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	path, body := ${quote(path)}, ${goQuote(body)}
	nonce := fmt.Sprint(time.Now().UnixMicro())
	mac := hmac.New(sha256.New, []byte(os.Getenv("API_SECRET")))
	mac.Write([]byte(nonce + "POST" + path + body))
	request, _ := http.NewRequest("POST", ${quote(origin)}+path, strings.NewReader(body))
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-api-key", os.Getenv("API_KEY"))
	request.Header.Set("x-api-nonce", nonce)
	request.Header.Set("x-api-signature", hex.EncodeToString(mac.Sum(nil)))
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, string(text))
}
`
    case 'cli':
      return `npx portolan call ${at} ${operation} ${shellQuote(body)}\n`
    default:
      return `body=${shellQuote(body)}
path=${shellQuote(path)}
nonce=$(date +%s%3N)
signature=$(printf '%s' "\${nonce}POST\${path}\${body}" | openssl dgst -sha256 -hmac "$API_SECRET" -r | cut -d' ' -f1)
curl -sS ${shellQuote(origin)}"$path" \\
  -H 'content-type: application/json' \\
  -H "x-api-key: $API_KEY" \\
  -H "x-api-nonce: $nonce" \\
  -H "x-api-signature: $signature" \\
  --data-raw "$body"
`
  }
}

const quote = (text: string) => JSON.stringify(text)

const pythonQuote = (text: string) => JSON.stringify(text)

/** A raw literal where the text has no backtick. */
const goQuote = (text: string) => (text.includes('`') ? JSON.stringify(text) : `\`${text}\``)

/** One word of a shell, whatever is in it. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const known = new Set(['admin', 'q', 't', 's', 'p', 'c'])

function clientOf(chain: string, network: string | undefined): string {
  if (!network && known.has(chain)) return `client.${chain}`
  return `client.chain(${quote(chain)}${network ? `, { network: ${quote(network)} }` : ''})`
}
