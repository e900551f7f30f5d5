import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Problem } from '../components/problem.tsx'

/** The documents, which are a chunk of their own. */
export function LazyDocs() {
  const [docs, setDocs] = useState<{ Docs: FunctionComponent } | undefined>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    import('../docs/docs.tsx').then(setDocs, setError)
  }, [])
  if (error) return <Problem error={new Error('The documents were not loaded; reload the page.')} />
  return docs ? <docs.Docs /> : null
}
