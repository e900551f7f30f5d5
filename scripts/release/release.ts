// Makes a release: `npm run release -- --version 1.2.3`. Without further options it only shows what it would do.
//
//   --prepare   writes the version and the day into the files, commits and tags; pushing the tag is left to you
//   --publish   builds both packages, writes the bills of materials, and publishes with provenance
//
// `--publish` is for the release workflow: provenance needs the identity that it has. The version must be the tag's.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findSection, isUnreleased, withDate } from './changelog.ts'
import { manifests, versionProblem, withAppVersion, withVersion } from './versions.ts'

const root = join(import.meta.dirname, '../..')
const dist = join(root, 'dist')
const chart = 'deploy/helm/portolan/Chart.yaml'

const { values } = parseArgs({
  options: {
    version: { type: 'string' },
    prepare: { type: 'boolean', default: false },
    publish: { type: 'boolean', default: false },
  },
})
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const write = (path: string, text: string) => writeFileSync(join(root, path), text)
const capture = (program: string, args: string[]) =>
  execFileSync(program, args, { cwd: root, encoding: 'utf8' }).trim()
const run = (program: string, args: string[]) => {
  console.log(`$ ${program} ${args.join(' ')}`)
  execFileSync(program, args, { cwd: root, stdio: 'inherit' })
}
const fail = (problem: string): never => {
  console.error(problem)
  process.exit(1)
}

const version = values.version ?? (JSON.parse(read('package.json')).version as string)
const changelog = read('CHANGELOG.md')
const section = findSection(changelog, version) ?? fail(`CHANGELOG.md has no section ${version}.`)

if (values.publish) publish()
else prepare()

function prepare(): void {
  const tags = capture('git', ['tag', '--list', 'v*']).split('\n').filter(Boolean)
  const problem = versionProblem(version, tags)
  if (problem) fail(problem)
  const day = new Date().toISOString().slice(0, 10)
  const changed = {
    ...Object.fromEntries(manifests.map((path) => [path, withVersion(read(path), version)])),
    'CHANGELOG.md': withDate(changelog, version, day),
    [chart]: withAppVersion(read(chart), version),
  }
  for (const [path, text] of Object.entries(changed))
    console.log(`${text === read(path) ? 'unchanged' : 'changes  '} ${path}`)
  if (!values.prepare) {
    console.log(`\nRelease notes of v${version}:\n\n${section}\n`)
    console.log('Nothing was changed. --prepare writes the files, commits and tags.')
    return
  }
  if (capture('git', ['status', '--porcelain']) !== '') fail('There are uncommitted changes.')
  for (const [path, text] of Object.entries(changed)) write(path, text)
  run('npm', ['install', '--package-lock-only', '--ignore-scripts'])
  run('node', ['scripts/complete-lock.ts'])
  run('git', ['commit', '--all', '--message', `chore(release): v${version}`])
  run('git', ['tag', '--annotate', `v${version}`, '--message', `Portolan ${version}`])
  console.log(`Push it with: git push --follow-tags`)
}

function publish(): void {
  if (isUnreleased(changelog, version)) fail(`CHANGELOG.md says that ${version} is unreleased.`)
  const own = JSON.parse(read('package.json')).version
  if (own !== version) fail(`package.json has the version ${own}, and the release is ${version}.`)
  if (process.env.GITHUB_ACTIONS !== 'true')
    fail('Provenance needs the identity of the release workflow; push the tag instead.')
  mkdirSync(dist, { recursive: true })
  write('dist/release-notes.md', `${section}\n`)
  run('node', ['scripts/build-package.ts'])
  run('node', ['client/build/build.ts'])
  for (const folder of ['dist/portolan', 'client/dist'])
    run('npm', ['pack', `./${folder}`, '--pack-destination', 'dist'])
  run('node', ['scripts/release/bill-of-materials.ts'])
  for (const folder of ['client/dist', 'dist/portolan'])
    run('npm', ['publish', `./${folder}`, '--provenance', '--access', 'public'])
}
