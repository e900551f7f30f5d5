import { useState } from 'preact/hooks'
import rose from '../assets/rose.svg'
import { DocumentLink } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { useApp } from './context.ts'

/** Asks for a credential. The secret becomes a signing key and is not kept as text. */
export function SignIn(props: { problem: unknown }) {
  const { session, basePath } = useApp()
  const [error, setError] = useState(props.problem)
  const [busy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string) => String(form.get(name) ?? '').trim()
    setBusy(true)
    setError(undefined)
    try {
      const pair = { api_key: text('api_key'), api_secret: text('api_secret') }
      await session.signIn(pair, form.get('remember') !== null)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <main class="sign-in">
      <form class="sign-in-card" onSubmit={submit}>
        <h1 class="brand">
          <img src={rose} alt="" />
          Portolan
        </h1>
        <p class="soft">Sign in with an API key. This page signs requests in the browser.</p>
        {!window.isSecureContext && (
          <p class="notice">Browsers sign only on https and on localhost. Open this page there.</p>
        )}
        <div class="field">
          <label for="api_key">api_key</label>
          <input id="api_key" name="api_key" required autocomplete="username" spellcheck={false} />
        </div>
        <div class="field">
          <label for="api_secret">api_secret</label>
          <input
            id="api_secret"
            name="api_secret"
            type="password"
            required
            autocomplete="current-password"
          />
        </div>
        <label class="check">
          <input type="checkbox" name="remember" />
          Stay signed in on this browser
        </label>
        <Problem error={error} />
        <button type="submit" class="button primary" disabled={busy} aria-busy={busy}>
          Sign in
        </button>
        <p class="hint">
          The first start without a configuration writes keys to <code>.data/connection.json</code>;{' '}
          <code>portolan keys create</code> makes more.{' '}
          <DocumentLink href={`${basePath}/docs`}>API reference</DocumentLink>
        </p>
      </form>
    </main>
  )
}
