import {
  assetTypes,
  contractTypes,
  domainPattern,
  evmPattern,
  records,
  sendableContractTypes,
} from './records.ts'

/** What is said of one field: type, required, limits, default, pattern, enum. */
export type Said = Record<string, unknown>

/** Fields by their path: `addresses`, `addresses[]`, `wallet.name`. */
export type FieldTable = Map<string, Said>

/** One operation of one variant, as the specification's tables have it. */
export type SpecOperation = {
  tag: string
  name: string
  request: FieldTable
  response: FieldTable
  atLeastOne: string[]
}

type Block = { name: string; tags: string; lines: string[] }

const blocksOf = (text: string): Block[] =>
  text
    .split(/\n(?=\S)/)
    .filter((block) => block.trim() !== '')
    .map((block) => {
      const [head = '', ...lines] = block.split('\n').map((line) => line.trim())
      const [, name = '', tags = ''] = /^(\w+) \((\w+)\)$/.exec(head) ?? []
      return { name, tags, lines: lines.filter((line) => line !== '') }
    })

const recordBlocks = blocksOf(records)

/** Reads the operation tables: one entry for each variant of each block. */
export const parseOperations = (text: string): SpecOperation[] =>
  blocksOf(text).flatMap(({ name, tags, lines }) =>
    [...tags].map((tag) => {
      const isAnswer = (line: string) => line.startsWith('-> ')
      const choice = lines.find((line) => line.startsWith('at least one: '))
      return {
        tag,
        name,
        request: fieldsOf(
          lines.filter((line) => !isAnswer(line) && line !== choice),
          tag,
        ),
        response: fieldsOf(
          lines.filter(isAnswer).map((line) => line.slice(3)),
          tag,
        ),
        atLeastOne: choice?.slice('at least one: '.length).split(' ') ?? [],
      }
    }),
  )

function fieldsOf(lines: string[], tag: string, prefix = ''): FieldTable {
  const table: FieldTable = new Map()
  const addAll = (fields: FieldTable) => {
    for (const [path, said] of fields) table.set(path, said)
  }
  for (const line of lines) {
    if (line.startsWith('...')) {
      addAll(fieldsOf(recordLines(line.slice(3), tag), tag, prefix))
      continue
    }
    const [name = '', type = '', ...flags] = line.split(' ')
    const variants = flags.includes('in') ? flags[flags.indexOf('in') + 1] : tag
    if (!variants?.includes(tag)) continue
    const path = `${prefix}${name}`
    const element = type.replace('[]', '')
    const isList = type !== element
    const isRecord = /^[A-Z]/.test(element)
    const said = isRecord ? { type: 'object' } : typeOf(element, tag)
    if (isList) table.set(`${path}[]`, said)
    table.set(path, { ...(isList ? { type: 'array' } : said), ...flagsOf(flags, isList, said) })
    if (isRecord) {
      const inner = `${path}${isList ? '[]' : ''}.`
      addAll(fieldsOf(recordLines(element, tag), tag, inner))
    }
  }
  return table
}

function recordLines(name: string, tag: string): string[] {
  const block = recordBlocks.find((one) => one.name === name && one.tags.includes(tag))
  if (!block) throw new Error(`no record ${name} in ${tag}`)
  return block.lines
}

function typeOf(type: string, tag: string): Said {
  const types: Record<string, Said> = {
    int64: { type: 'integer' },
    timestamp: { type: 'string', format: 'date-time' },
    decimal: { type: 'string' },
    evm: { type: 'string', pattern: evmPattern },
    domain: { type: 'string', minLength: 1, maxLength: 50, pattern: domainPattern },
    asset_type: { type: 'string', enum: assetTypes[tag] },
    contract_type: { type: 'string', enum: contractTypes },
    sendable_contract_type: { type: 'string', enum: sendableContractTypes },
  }
  return types[type] ?? { type }
}

function flagsOf(flags: string[], isList: boolean, said: Said): Said {
  const [min, max] = isList
    ? ['minItems', 'maxItems']
    : said.type === 'string'
      ? ['minLength', 'maxLength']
      : ['minimum', 'maximum']
  const result: Said = {}
  for (const flag of flags) {
    const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(flag) ?? []
    if (from && to) Object.assign(result, { [min]: Number(from), [max]: Number(to) })
    if (flag === 'req') result.required = true
    if (flag === 'opt') result.optional = true
    if (flag.startsWith('max=')) result[max] = Number(flag.slice(4))
    if (flag.startsWith('default=')) result.default = JSON.parse(flag.slice(8))
  }
  return result
}
