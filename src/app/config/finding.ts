/** Where a value is: keys of sections and maps, indices of lists. */
export type Path = readonly (string | number)[]

/** A value that breaks a rule: "`path` must `must`; it is `value`". */
export type Finding = { path: Path; must: string; value?: unknown }
