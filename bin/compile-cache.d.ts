export declare function ownCompileCache(
  env?: Readonly<Record<string, string | undefined>>,
  uid?: number,
): string | undefined
