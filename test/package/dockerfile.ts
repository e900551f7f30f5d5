import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** One instruction of a Dockerfile, with its continued lines joined. */
export type Instruction = { name: string; text: string }

/** One stage: its name, what it starts from, and its instructions. */
export type Stage = { name: string; base: string; instructions: Instruction[] }

/** Reads the stages of a Dockerfile. */
export function readStages(text: string): Stage[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const stages: Stage[] = []
  for (const line of lines) {
    const [, name = '', rest = ''] = /^(\w+) +(.*)$/.exec(line) ?? []
    if (name === 'FROM') {
      const [base = '', , alias = ''] = rest.replace(/^--\S+ /, '').split(' ')
      stages.push({ name: alias, base, instructions: [] })
    } else stages.at(-1)?.instructions.push({ name, text: rest })
  }
  return stages
}

/**
 * Runs COPY and RUN of a stage in a plain directory, which stands for the root of its file system. Commands use the
 * programs of this machine.
 */
export function runStage(
  stage: Stage,
  options: { context: string; roots: string; path: string; log(line: string): void },
): string {
  const { context, roots, path, log } = options
  const root = join(roots, stage.name || 'image')
  mkdirSync(root, { recursive: true })
  let directory = '/'
  for (const { name, text } of stage.instructions) {
    if (name === 'WORKDIR') {
      directory = text
      mkdirSync(join(root, directory), { recursive: true })
    } else if (name === 'RUN') {
      log(`[${stage.name}] ${text}`)
      execFileSync('sh', ['-ec', text], {
        cwd: join(root, directory),
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...process.env, PATH: path },
      })
    } else if (name === 'COPY') {
      const words = text.split(' ')
      const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
      const [target = '', ...sources] = words.filter((word) => !word.startsWith('--')).reverse()
      for (const source of sources)
        copy(
          join(from ? join(roots, from) : context, source),
          join(root, target.startsWith('/') ? '' : directory, target),
          from ? () => true : isSent,
        )
    }
  }
  return root
}

/** As COPY does: the content of a folder, or a file, into a folder when the target ends with a slash. */
function copy(source: string, target: string, filter: (path: string) => boolean): void {
  const place =
    statSync(source).isFile() && target.endsWith('/') ? join(target, basename(source)) : target
  mkdirSync(dirname(place), { recursive: true })
  cpSync(source, place, { recursive: true, verbatimSymlinks: true, filter })
}

// What `.dockerignore` keeps out of the folders that it lets in.
const isSent = (path: string): boolean =>
  !/(?:^|\/)(?:node_modules|dist)$|\.(?:test|itest|test-d)\.ts$/.test(path)
