import { useEffect } from 'preact/hooks'
import { useApp } from './context.ts'
import { LazyDocs } from './lazy-docs.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'

const codePrefix = '#sign-in='

/** The console, or the form to sign in. */
export function Root() {
  const { session, router } = useApp()
  useEffect(() => {
    /** Whether the address was a one-time link. */
    const followLink = (): boolean => {
      const { hash, pathname, search } = window.location
      if (!hash.startsWith(codePrefix)) return false
      // Taken out of the address at once: histories and screens are shared.
      window.history.replaceState(null, '', pathname + search)
      void session.signInByCode(hash.slice(codePrefix.length))
      return true
    }
    if (!followLink()) void session.restore()
    // In a tab that shows the console already, the link does not load it again.
    window.addEventListener('hashchange', followLink)
    return () => window.removeEventListener('hashchange', followLink)
  }, [])
  const account = session.account.value
  // The documents are for everyone; a credential is only needed to try an operation.
  if (/^docs(?:\/|$)/.test(router.place.value.path)) return <LazyDocs />
  if (account === null) return null
  return account ? <Shell /> : <SignIn problem={session.problem.value} />
}
