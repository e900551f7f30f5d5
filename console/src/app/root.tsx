import { useEffect, useState } from 'preact/hooks'
import { useApp } from './context.ts'
import { LazyDocs } from './lazy-docs.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'

const codePrefix = '#sign-in='

/** The console, or the form to sign in. */
export function Root() {
  const { session, router } = useApp()
  const [problem, setProblem] = useState<unknown>()
  useEffect(() => {
    const { hash, pathname, search } = window.location
    if (!hash.startsWith(codePrefix)) {
      void session.restore()
      return
    }
    // Taken out of the address at once: histories and screens are shared.
    window.history.replaceState(null, '', pathname + search)
    session.signInByCode(hash.slice(codePrefix.length)).catch(async (error: unknown) => {
      setProblem(error)
      await session.restore()
    })
  }, [])
  const account = session.account.value
  // The documents are for everyone; a credential is only needed to try an operation.
  if (/^docs(?:\/|$)/.test(router.place.value.path)) return <LazyDocs />
  if (account === null) return null
  return account ? <Shell /> : <SignIn problem={problem} />
}
