// One piece of code serves several services, whose requests and records differ in some fields. These
// types merge such a union of objects into the one object that the code reads or returns.

type KeyOf<union> = union extends unknown ? keyof union : never

/** The keys that every member of a union requires. */
type CommonKey<union> = {
  [key in KeyOf<union>]: [union] extends [{ [one in key]: unknown }] ? key : never
}[KeyOf<union>]

type ValueOf<union, key extends PropertyKey> = union extends { [one in key]?: infer value }
  ? value
  : never

/** What is read: a field that one member lacks, or makes optional, is optional. */
export type MergedRequest<union> = { [key in CommonKey<union>]: ValueOf<union, key> } & {
  [key in Exclude<KeyOf<union>, CommonKey<union>>]?: ValueOf<union, key>
}

/** What is returned: the same with records and lists inside. Undefined is like absent: the projection leaves it out. */
export type MergedAnswer<union> = [union] extends [readonly (infer item)[]]
  ? MergedAnswer<item>[]
  : [union] extends [object]
    ? { [key in CommonKey<union>]: MergedAnswer<ValueOf<union, key>> } & {
        [key in Exclude<KeyOf<union>, CommonKey<union>>]?:
          | MergedAnswer<ValueOf<union, key>>
          | undefined
      }
    : union
