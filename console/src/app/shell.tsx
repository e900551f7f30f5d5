import { useEffect } from 'preact/hooks'
import { Frame } from '../components/frame.tsx'
import { DocumentLink, Link } from '../components/link.tsx'
import { formatConstant } from '../lib/format.ts'
import { useAccount, useApp } from './context.ts'
import { navigationOf } from './navigation.ts'
import { loadAhead, Routes } from './routes.tsx'
import { Search } from './search.tsx'

/** The console around its pages. */
export function Shell() {
  const account = useAccount()
  const live = account.live.state.value
  useEffect(() => {
    const left = new AbortController()
    void loadAhead(left.signal)
    return () => left.abort()
  }, [])
  return (
    <Frame
      home=""
      navigation={<Navigation />}
      search={<Search />}
      status={
        <span class="live" data-state={live} role="status" title={liveTitles[live]}>
          <span>
            {live === 'open' ? 'Live' : live === 'connecting' ? 'Connecting' : 'Not live'}
          </span>
        </span>
      }
    >
      <Routes />
    </Frame>
  )
}

function Navigation() {
  const { router, session, basePath } = useApp()
  const account = useAccount()
  const section = router.place.value.path.split('/')[0] ?? ''
  return (
    <>
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
    </>
  )
}

const liveTitles = {
  open: 'Events arrive as they happen',
  connecting: 'The event stream is opened; the page is read again when the service answers',
  broken: 'This key gets no events: load the page again to see what is new',
}
