import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import rose from '../assets/rose.svg'
import { DocumentLink } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { useApp } from './context.ts'

/** Asks for a credential. The secret becomes a signing key and is not kept as text. */
export function SignInForm(props: { problem?: unknown; children?: ComponentChildren }) {
  const { session } = useApp()
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
    <form class="form" onSubmit={submit}>
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
      {props.children}
    </form>
  )
}

/** The page in place of the console before a credential is there. */
export function SignIn(props: { problem: unknown }) {
  const { basePath } = useApp()
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <h1 class="brand">
          <img src={rose} alt="" />
          Portolan
        </h1>
        <p class="soft">Sign in with an API key. This page signs requests in the browser.</p>
        <SignInForm key={String(props.problem)} problem={props.problem}>
          <p class="hint">
            The first start without a configuration writes keys to{' '}
            <code>.data/connection.json</code>; <code>portolan keys create</code> makes more.{' '}
            <DocumentLink href={`${basePath}/docs`}>Documentation</DocumentLink>
          </p>
        </SignInForm>
      </div>
    </main>
  )
}
