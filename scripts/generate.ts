import { readFile, writeFile } from 'node:fs/promises'
import { configMarkdown, exampleYaml } from '../src/app/config/describe.ts'
import { errorsMarkdown } from './errors-markdown.ts'
import { knownChainsJson } from './known-chains.ts'
import { llmsText } from './llms-text.ts'
import { metricsMarkdown } from './metrics-markdown.ts'
import { operationsMarkdown } from './operations-markdown.ts'
import { transactionsMarkdown } from './transactions-markdown.ts'

/** What is written from the code, so that it cannot drift from it. */
const documents: Record<string, () => string> = {
  'docs/configuration.md': configMarkdown,
  'docs/errors.md': errorsMarkdown,
  'docs/metrics.md': metricsMarkdown,
  'docs/operations.md': operationsMarkdown,
  'docs/transactions.md': transactionsMarkdown,
  'portolan.example.yaml': exampleYaml,
  'src/chains/evm/known-chains.json': knownChainsJson,
  // After the others: it reads what they wrote.
  'llms.txt': llmsText,
}

const check = process.argv.includes('--check')
const stale: string[] = []
for (const [path, make] of Object.entries(documents)) {
  const url = new URL(`../${path}`, import.meta.url)
  const text = make()
  if (text === (await readFile(url, 'utf8').catch(() => ''))) continue
  if (check) stale.push(path)
  else await writeFile(url, text)
}
if (stale.length > 0) {
  console.error(`Out of date: ${stale.join(', ')}. Run: npm run generate`)
  process.exitCode = 1
}
