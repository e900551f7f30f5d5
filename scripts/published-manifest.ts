import type { Bundled } from './bundled-packages.ts'

/** The part of a manifest of the repository that matters here. */
export type Manifest = {
  name: string
  version: string
  description: string
  license: string
  keywords?: string[]
  bin?: Record<string, string>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  overrides?: Record<string, string | Record<string, string>>
}

/**
 * The manifest of the npm package `portolan`. It names what the service loads, and neither tools nor local chains.
 * Provenance needs the repository, which only the release workflow knows (`owner/name`).
 */
export function publishedManifest(
  manifest: Manifest,
  repository: string | undefined,
  bundled: Bundled = { names: [], dependencies: {} },
) {
  const { name, version, description, license, keywords, bin } = manifest
  const { dependencies, optionalDependencies, devDependencies } = manifest
  return {
    ...{ name, version, description, license, keywords },
    ...(repository && repositoryOf(repository)),
    type: 'module',
    // The Node that the tests run with, in every later minor version too.
    engines: { node: `>=${devDependencies?.node?.split('.')[0]}` },
    bin,
    exports: { './package.json': './package.json' },
    dependencies: { ...bundled.dependencies, ...dependencies },
    optionalDependencies,
    ...(bundled.names.length > 0 && { bundleDependencies: bundled.names }),
    publishConfig: { access: 'public' },
  }
}

/** The fields of a manifest that name the repository. */
export const repositoryOf = (repository: string) => ({
  repository: { type: 'git', url: `git+https://github.com/${repository}.git` },
  homepage: `https://github.com/${repository}#readme`,
  bugs: { url: `https://github.com/${repository}/issues` },
})
