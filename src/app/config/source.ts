/** Where a value came from. */
export type Origin =
  | { from: 'default' }
  | { from: 'file'; file: string; line?: number; column?: number }
  | { from: 'env'; variable: string }
  | { from: 'override' }

/** Where a configuration came from: its file if there is one, and the origin of each key that is not a default. */
export type Source = {
  readonly file?: string
  readonly origins: Readonly<Record<string, Origin>>
}
