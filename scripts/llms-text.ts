import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** An index of the documentation for programs that read it: title and first sentence of each page. */
export function llmsText(): string {
  const pages = [
    ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')),
    'decisions/README.md',
  ]
    .sort()
    .map((name) => entryOf(`docs/${name}`))
  return `# Portolan

> Wallet tracking with signed webhooks on TON, Sui, Polkadot Asset Hub and EVM chains, chain queries, and a JSON-RPC node
> gateway, for many organizations, as one self-hosted service. Operations are \`POST {base_url}/v1/{service}/{Operation}\` with
> a JSON body, signed by HMAC; the gateway is \`POST {base_url}/{chain}/{network}/v1/{api_key}\`. The API of a running service
> is at \`/openapi.json\`.

## Documentation

${pages.join('\n')}

## More

${['README.md', 'client/README.md', 'CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md'].map(entryOf).join('\n')}
`
}

function entryOf(path: string): string {
  const text = readFileSync(join(root, path), 'utf8')
  const title = /^# (.*)$/m.exec(text)?.[1] ?? path
  const paragraph = /^# .*\n+((?:[^#|`\-\n>].*\n)+)/m.exec(text)?.[1] ?? ''
  const sentence = /^.*?[.:](?=\s|$)/s.exec(paragraph)?.[0].replaceAll(/\s+/g, ' ') ?? ''
  return `- [${title}](${path})${sentence ? `: ${sentence.replace(/:$/, '.')}` : ''}`
}
