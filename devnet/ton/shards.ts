/** The shard that holds every account of a workchain. */
export const wholeShard = 1n << 63n

const mask = (1n << 64n) - 1n
const markOf = (shard: bigint): bigint => shard & -shard & mask

/** Whether a shard, or a part of it, is the other one. */
export const covers = (shard: bigint, other: bigint): boolean => {
  const mark = markOf(shard)
  return mark >= markOf(other) && ((shard ^ other) & ~((mark << 1n) - 1n) & mask) === 0n
}

/** Whether two shards have accounts in common: then one is the other or a part of it. */
export const overlap = (a: bigint, b: bigint): boolean => covers(a, b) || covers(b, a)

/** Whether the account that begins with these 64 bits belongs to a shard. */
export const holds = (shard: bigint, prefix: bigint): boolean =>
  ((shard ^ prefix) & ~((markOf(shard) << 1n) - 1n) & mask) === 0n

/** The two halves of a shard. */
export const halvesOf = (shard: bigint): [bigint, bigint] => {
  const half = markOf(shard) >> 1n
  return [shard - half, shard + half]
}

/** The shard of which this one is a half. */
export const wholeOf = (shard: bigint): bigint => {
  const mark = markOf(shard)
  return (shard ^ mark) | (mark << 1n)
}

/** How often the workchain was split to get this shard. */
export const depthOf = (shard: bigint): number => 64 - markOf(shard).toString(2).length
