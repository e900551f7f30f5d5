/**
 * Whether a caller has the entity with this tag (`If-None-Match`). A proxy that compresses makes the tag a weak one
 * (RFC 9110, 13.1.2: compared weakly).
 */
export const knowsTag = (given: string | undefined, etag: string): boolean =>
  (given ?? '')
    .split(',')
    .some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
