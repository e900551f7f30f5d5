import { accessOf } from '../src/contract/access.ts'
import { anyOfIn, requestSchema } from '../src/contract/operation.ts'
import { catalogue, type Entry } from '../src/contract/operations/catalogue.ts'
import { type Service, services } from '../src/contract/variant.ts'

const titles: Record<Service, string> = {
  admin: 'Administration (`admin`)',
  q: 'Chain query (`q`)',
  t: 'Wallets T, TON (`t`)',
  s: 'Wallets S, Sui (`s`)',
  p: 'Wallets P, Polkadot Asset Hub (`p`)',
  c: 'Wallets C, EVM (`c`)',
}

/** The catalogue as a document: what can be called, with which fields. */
export function operationsMarkdown(): string {
  const sections = Object.entries(titles).map(([service, title]) => {
    const rows = catalogue.filter((entry) => entry.service === service).map(row)
    return `## ${title}\n\n| Operation | Request | |\n|---|---|---|\n${rows.join('\n')}\n`
  })
  return `# Operations

Written by \`npm run generate\` from \`src/contract\`.

Every operation is \`POST /v1/{service}/{Operation}\`. Fields in bold are required; * means that at least one of
the fields marked so is; "not a with b" names fields that exclude each other. Extensions go beyond the specification. Operations marked "read" are open to every role,
"write" to members, owners and administrators, "owner" to the last two, "admin only" to administrators. What an operation
answers, with every field, is in \`/docs\` and \`/openapi.json\` of the service.

${sections.join('\n')}`
}

function row({ service, name, row: operation }: Entry): string {
  const schema = requestSchema(operation, service)
  const required = new Set<string>((schema as { required?: string[] }).required ?? [])
  const anyOf = new Set(anyOfIn(operation, services[service]))
  const fields = Object.keys(schema.properties).map((field) => {
    if (required.has(field)) return `**${field}**`
    return anyOf.has(field) ? `${field}*` : field
  })
  const notes = [
    operation.extension && 'extension',
    operation.role === 'ROLE_ADMIN' && 'admin only',
    operation.role === 'ROLE_OWNER' && 'owner',
    operation.role === undefined && accessOf({ name }),
    ...(operation.exclusive ?? []).map(([one, other]) => `not ${one} with ${other}`),
  ].filter(Boolean)
  return `| ${name}: ${operation.summary} | ${fields.join(', ') || '{}'} | ${notes.join(', ')} |`
}
