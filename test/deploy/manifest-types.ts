import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Manifest } from './chart.ts'
import { root } from './expressions.ts'
import { runTool } from './tools.ts'

/**
 * What is wrong with manifests by the types of Kubernetes 1.30, which are made from its OpenAPI document. The compiler of the
 * project compares them: unknown, missing and mistyped fields are errors, as with a strict schema check.
 */
export function findTypeErrors(manifests: readonly Manifest[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-manifests-'))
  try {
    const types = dirname(createRequire(import.meta.url).resolve('kubernetes-types/package.json'))
    const lines = manifests.map((manifest, index) => {
      const { apiVersion, kind } = manifest as { apiVersion: string; kind: string }
      const path = apiVersion === 'v1' ? 'core/v1' : apiVersion.replace('.k8s.io', '')
      const literal = JSON.stringify(manifest, null, 2)
      return `export const m${index}: import('${types}/${path}').${kind} = ${literal}`
    })
    const file = join(folder, 'manifests.ts')
    writeFileSync(file, lines.join('\n'))
    const { text } = runTool(process.execPath, [
      ...[join(root, 'node_modules/typescript/bin/tsc'), '--ignoreConfig', '--noEmit', '--strict'],
      ...[
        '--skipLibCheck',
        '--lib',
        'es5',
        '--module',
        'esnext',
        '--moduleResolution',
        'bundler',
        '--types',
        '',
        file,
      ],
    ])
    return text.split('\n').filter((line) => line.includes('error TS'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
