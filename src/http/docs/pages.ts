import { errors } from '../../contract/errors/errors.ts'
import type { ErrorRow } from '../../contract/errors/row.ts'

const retries = {
  never: 'No: the same request fails again.',
  later: 'Yes, later.',
  after: 'Yes, after the time that `Retry-After` names.',
}

/** Every reason on one page. */
export const errorsPage = (): string => {
  const rows = Object.entries(errors).map(
    ([reason, { status, code, title }]) =>
      `<tr><td><a href="/docs/errors/${reason}"><code>${reason}</code></a></td><td>${status}</td><td><code>${code}</code></td><td>${title}</td></tr>`,
  )
  return html(
    'Errors',
    '',
    `<main class="article"><h1>Errors</h1>
<p>A failed operation answers <code>application/problem+json</code>. Its <code>reason</code> is one of these; its <code>type</code> leads to the page of the reason.</p>
<table><tr><th>Reason</th><th>HTTP</th><th>Code</th><th>Meaning</th></tr>${rows.join('')}</table>
<p><a href="/docs">API reference</a></p></main>`,
  )
}

/** The page of one reason; undefined when there is no such reason. */
export const errorPage = (reason: string): string | undefined => {
  if (!Object.hasOwn(errors, reason)) return undefined
  const row: ErrorRow = errors[reason as keyof typeof errors]
  return html(
    reason,
    '',
    `<main class="article"><h1>${row.title}</h1>
<p><code>${reason}</code>: HTTP ${row.status}, <code>${row.code}</code>; JSON-RPC ${row.rpc}.</p>
<p>${inline(row.help)}</p>
<p>Can a retry help? ${inline(retries[row.retry])}</p>
<p><a href="/docs/errors">All errors</a> · <a href="/docs">API reference</a></p></main>`,
  )
}

const inline = (text: string) => text.replaceAll(/`([^`]+)`/g, '<code>$1</code>')

const html = (title: string, head: string, body: string) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/docs/assets/page.css">${head}</head>
<body>${body}</body></html>
`
