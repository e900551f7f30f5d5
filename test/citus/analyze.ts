import { parse } from 'libpg-query'
import { distributedTables } from '../../src/storage/migrations/distribute.ts'

/** What Citus would have against a statement. */
export type Finding = {
  /** `select delivery`: the statement reads or writes the table without its organization. */
  unkeyed: string[]
  /** What Citus refuses on a distributed table. */
  refused: string[]
  /** Whether it uses a distributed table. */
  isDistributed: boolean
}

const key = 'organization_id'
const distributed: ReadonlySet<string> = new Set(distributedTables)

// biome-ignore lint/suspicious/noExplicitAny: the tree of the parser
type Node = any

type Column = { qualifier: string | undefined; name: string; scope: Scope }
type Operand = Column | 'value'
type Reference = { verb: string; table: string; alias: string; isKeyed: boolean }
type Scope = { parent: Scope | undefined; references: Map<string, Reference | undefined> }

/** Parses a statement and finds the distributed tables that it uses without their distribution key. */
export async function analyze(text: string): Promise<Finding> {
  const { stmts } = (await parse(text)) as { stmts: Node[] }
  const references: Reference[] = []
  const equalities: [Operand, Operand][] = []
  const refused = new Set<string>()
  const common = new Set<string>()

  const scopeOf = (parent: Scope | undefined): Scope => ({ parent, references: new Map() })

  const refer = (scope: Scope, range: Node, verb: string): Reference | undefined => {
    const { relname, alias } = range
    const name = alias?.aliasname ?? relname
    const isTable = distributed.has(relname) && !common.has(relname)
    const reference = isTable
      ? { verb, table: relname as string, alias: name as string, isKeyed: false }
      : undefined
    scope.references.set(name, reference)
    if (reference) references.push(reference)
    return reference
  }

  const operandOf = (node: Node, scope: Scope): Operand => {
    if (node?.TypeCast) return operandOf(node.TypeCast.arg, scope)
    const fields = node?.ColumnRef?.fields as Node[] | undefined
    if (!fields) {
      const target = node?.SubLink?.subselect?.SelectStmt?.targetList?.[0]?.ResTarget?.val
      return target?.ColumnRef ? operandOf(target, scope) : 'value'
    }
    const names = fields.map((field) => field.String?.sval ?? '*')
    return { qualifier: names.length > 1 ? names[0] : undefined, name: names.at(-1)!, scope }
  }

  const walk = (node: Node, scope: Scope, verb = 'select'): void => {
    if (Array.isArray(node)) {
      for (const one of node) walk(one, scope, verb)
      return
    }
    if (node === null || typeof node !== 'object') return
    for (const [kind, value] of Object.entries(node) as [string, Node][]) {
      if (kind === 'SelectStmt') select(value, scopeOf(scope))
      else if (kind === 'InsertStmt') insert(value, scopeOf(scope))
      else if (kind === 'UpdateStmt' || kind === 'DeleteStmt')
        change(kind === 'UpdateStmt' ? 'update' : 'delete', value, scopeOf(scope))
      else if (kind === 'A_Expr') {
        if (value.name?.[0]?.String?.sval === '=')
          equalities.push([operandOf(value.lexpr, scope), operandOf(value.rexpr, scope)])
        walk([value.lexpr, value.rexpr], scope)
      } else if (kind === 'SubLink') {
        if (value.testexpr)
          equalities.push([operandOf(value.testexpr, scope), operandOf({ SubLink: value }, scope)])
        walk([value.testexpr, value.subselect], scope)
      } else if (kind === 'RangeVar') refer(scope, value, verb)
      else if (kind === 'ColumnRef') {
        if (value.fields?.at(-1)?.String?.sval === 'ctid') refused.add('ctid')
      } else walk(value, scope, verb)
    }
  }

  const withClause = (value: Node, scope: Scope) => {
    for (const { CommonTableExpr: cte } of value?.ctes ?? []) common.add(cte.ctename)
    for (const { CommonTableExpr: cte } of value?.ctes ?? []) walk(cte.ctequery, scope)
  }

  const select = (value: Node, scope: Scope) => {
    withClause(value.withClause, scope)
    if (value.larg) {
      select(value.larg, scopeOf(scope.parent))
      select(value.rarg, scopeOf(scope.parent))
    }
    walk(value.fromClause, scope)
    const { withClause: _, fromClause: __, larg: ___, rarg: ____, ...rest } = value
    walk(rest, scope)
  }

  const insert = (value: Node, scope: Scope) => {
    withClause(value.withClause, scope)
    const target = refer(scope, value.relation, 'insert')
    const names = (value.cols ?? []).map((one: Node) => one.ResTarget.name)
    if (target && (names.includes(key) || names.length === 0)) target.isKeyed = true
    walk(value.selectStmt, scope)
    walk(value.returningList, scope)
  }

  const change = (verb: string, value: Node, scope: Scope) => {
    withClause(value.withClause, scope)
    refer(scope, value.relation, verb)
    walk([value.fromClause, value.usingClause], scope)
    if (verb === 'update' && value.targetList?.some((one: Node) => one.ResTarget?.name === key))
      refused.add('an update of the distribution key')
    walk([value.targetList, value.whereClause, value.returningList], scope)
  }

  for (const { stmt } of stmts) walk(stmt, scopeOf(undefined))

  /** The references that a column may belong to, and whether it may belong to something else. */
  const owners = (column: Column): { tables: Reference[]; isOther: boolean } => {
    for (let scope: Scope | undefined = column.scope; scope; scope = scope.parent) {
      if (column.qualifier !== undefined) {
        if (!scope.references.has(column.qualifier)) continue
        const found = scope.references.get(column.qualifier)
        return { tables: found ? [found] : [], isOther: !found }
      }
      const found = [...scope.references.values()].filter((one) => one !== undefined)
      if (found.length > 0) return { tables: found, isOther: false }
    }
    // A function, a sub-select or a common table expression: what is in it was checked where it is.
    return { tables: [], isOther: true }
  }
  const isKnown = (operand: Operand): boolean => {
    if (operand === 'value') return true
    if (operand.name !== key) return false
    const { tables, isOther } = owners(operand)
    return isOther || tables.some(({ isKeyed }) => isKeyed)
  }
  for (let before = -1; before !== references.filter(({ isKeyed }) => isKeyed).length; ) {
    before = references.filter(({ isKeyed }) => isKeyed).length
    for (const [left, right] of equalities)
      for (const [mine, other] of [
        [left, right],
        [right, left],
      ] as const)
        if (mine !== 'value' && mine.name === key && isKnown(other))
          for (const table of owners(mine).tables) table.isKeyed = true
  }
  const unkeyed = references.filter(({ isKeyed }) => !isKeyed)
  return {
    unkeyed: [...new Set(unkeyed.map(({ verb, table }) => `${verb} ${table}`))].sort(),
    refused: references.length > 0 ? [...refused].sort() : [],
    isDistributed: references.length > 0,
  }
}
