import { errors } from '../src/contract/errors/errors.ts'
import type { ErrorRow } from '../src/contract/errors/row.ts'

const retries = { never: 'no', later: 'yes, later', after: 'yes, after `Retry-After`' }

/** The error table as a document. */
export function errorsMarkdown(): string {
  const rows = Object.entries(errors).map(
    ([reason, row]: [string, ErrorRow]) =>
      `| \`${reason}\` | ${row.status} | \`${row.code}\` | ${row.rpc} | ${retries[row.retry]} | ${row.title}. ${row.help} |`,
  )
  return `# Errors

Written by \`npm run generate\` from \`src/contract/errors/errors.ts\`.

A failed operation answers \`application/problem+json\` (RFC 9457):

\`\`\`json
{
  "type": "/docs/errors/INVALID_REQUEST",
  "title": "The request is not valid",
  "status": 400,
  "detail": "Not valid: name.",
  "code": "INVALID_ARGUMENT",
  "reason": "INVALID_REQUEST",
  "request_id": "01930000-0000-7000-8000-000000000000",
  "errors": [{ "field": "name", "reason": "REQUIRED", "detail": "Is required." }]
}
\`\`\`

Branch on \`reason\`. \`request_id\` is also the response header \`x-request-id\`; the operator finds the request
by it in the log. \`errors\` names every bad field at once; the reason of a field is one of
those under \`INVALID_REQUEST\`, or that of the answer itself.

| reason | HTTP | code | JSON-RPC | retry | what it means |
|---|---|---|---|---|---|
${rows.join('\n')}
`
}
