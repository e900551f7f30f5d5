/** A key that signs without showing its secret. */
export type StoredKey = { api_key: string; key: CryptoKey }

const store = 'keys'
const row = 'session'

/** Keeps the signing key of this browser. IndexedDB stores a CryptoKey that scripts cannot export. */
export const saveKey = (stored: StoredKey): Promise<void> =>
  run('readwrite', (keys) => keys.put(stored, row)).then(() => undefined)

/** The key of this browser; undefined where none is kept, or where the browser has no storage. */
export const loadKey = (): Promise<StoredKey | undefined> =>
  run('readonly', (keys) => keys.get(row) as IDBRequest<StoredKey | undefined>).catch(
    () => undefined,
  )

/** Forgets the key of this browser. */
export const forgetKey = (): Promise<void> =>
  run('readwrite', (keys) => keys.delete(row)).then(
    () => undefined,
    () => undefined,
  )

async function run<result>(
  mode: IDBTransactionMode,
  use: (keys: IDBObjectStore) => IDBRequest<result>,
): Promise<result> {
  const opening = indexedDB.open('portolan-console', 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore(store)
  const database = await settled(opening)
  try {
    return await settled(use(database.transaction(store, mode).objectStore(store)))
  } finally {
    database.close()
  }
}

const settled = <result>(request: IDBRequest<result>): Promise<result> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
