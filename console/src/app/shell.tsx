import { useEffect, useRef, useState } from 'preact/hooks'
import rose from '../assets/rose.svg'
import { MenuIcon, ThemeIcon } from '../components/icons.tsx'
import { DocumentLink, Link } from '../components/link.tsx'
import { formatConstant } from '../lib/format.ts'
import { nextTheme } from '../lib/theme.ts'
import { useAccount, useApp } from './context.ts'
import { navigationOf } from './navigation.ts'
import { Routes } from './routes.tsx'
import { Search } from './search.tsx'

/** Navigation, search, and the page between them. */
export function Shell() {
  const { router, session, theme, basePath } = useApp()
  const account = useAccount()
  const [open, setOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const { path } = router.place.value
  const section = path.split('/')[0] ?? ''
  useEffect(() => setOpen(false), [path])
  useEffect(() => {
    if (!open) return
    const close = (event: KeyboardEvent) => event.key === 'Escape' && setOpen(false)
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  }, [open])
  const choice = theme.choice.value
  const live = account.live.state.value
  return (
    <div class="shell">
      <button type="button" class="skip button primary" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <aside class="side" data-open={open} id="navigation">
        <Link to="" class="brand">
          <img src={rose} alt="" />
          Portolan
        </Link>
        <nav class="nav" aria-label="Pages">
          {navigationOf(account).map(({ title, items }) => (
            <div key={title}>
              <h2>{title}</h2>
              {items.map((item) => (
                <Link key={item.to} to={item.to} isCurrent={item.section === section}>
                  {item.title}
                </Link>
              ))}
            </div>
          ))}
        </nav>
        <div class="side-foot">
          <p class="side-name">{account.organization.name}</p>
          <p>
            {formatConstant(account.role, 'ROLE_')} · <code>{account.credential.api_key_hint}</code>
          </p>
          <p>
            <DocumentLink href={`${basePath}/docs`}>Documentation</DocumentLink>
          </p>
          <button
            type="button"
            class="button small"
            onClick={() => {
              void session.signOut()
              router.go('')
            }}
          >
            Sign out
          </button>
        </div>
      </aside>
      <div>
        <header class="top">
          <button
            type="button"
            class="button quiet icon-button menu-button"
            aria-expanded={open}
            aria-controls="navigation"
            aria-label="Menu"
            onClick={() => setOpen(!open)}
          >
            <MenuIcon />
          </button>
          <Search />
          <div class="top-end">
            <span class="live" data-state={live} role="status" title={liveTitles[live]}>
              <span>
                {live === 'open' ? 'Live' : live === 'connecting' ? 'Connecting' : 'Not live'}
              </span>
            </span>
            <button
              type="button"
              class="button quiet icon-button"
              aria-label={`Theme: ${choice}`}
              title={`Theme: ${choice}`}
              onClick={() => {
                theme.choice.value = nextTheme(choice)
              }}
            >
              <ThemeIcon choice={choice} />
            </button>
          </div>
        </header>
        <main ref={main} tabIndex={-1}>
          <Routes />
        </main>
      </div>
    </div>
  )
}

const liveTitles = {
  open: 'Events arrive as they happen',
  connecting: 'The event stream is opened',
  broken: 'The event stream ended: reload the page',
}
