// The documents of the service: the API reference made from its OpenAPI document, and the pages of the project. They need
// no credential; with one, every operation can be tried.

import { guides } from 'virtual:guide'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useApp } from '../app/context.ts'
import rose from '../assets/rose.svg'
import { MenuIcon, ThemeIcon } from '../components/icons.tsx'
import { Skeleton } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { matchPath, pathTo } from '../lib/router.ts'
import { nextTheme } from '../lib/theme.ts'
import { useResource } from '../lib/use-resource.ts'
import '../styles/docs.css'
import { DocsSearch } from './docs-search.tsx'
import { DocsStart } from './docs-start.tsx'
import { GuidePage } from './guide-page.tsx'
import { OperationPage } from './operation-page.tsx'

/** Navigation, search and one document. */
export function Docs() {
  const { router, theme, reference } = useApp()
  const { path } = router.place.value
  const loaded = useResource(() => reference.load(), [])
  const [open, setOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  useEffect(() => setOpen(false), [path])
  const guide = guideNameOf(path)
  const operation = matchPath('docs/api/:chain/:operation', path)
  const groups = Map.groupBy(loaded.data?.operations ?? [], ({ tag }) => tag)
  const choice = theme.choice.value
  const found = operation && loaded.data?.find(operation.chain ?? '', operation.operation ?? '')
  return (
    <div class="shell">
      <button type="button" class="skip button primary" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <aside class="side" data-open={open} id="navigation">
        <Link to="docs" class="brand">
          <img src={rose} alt="" />
          Portolan
        </Link>
        <nav class="nav docs-nav" aria-label="Documents">
          <div>
            <h2>API</h2>
            {[...groups].map(([tag, operations]) => (
              <details key={tag} open={operations.some(({ key }) => key === found?.key)}>
                <summary>{tag}</summary>
                {operations.map(({ key, chain, name }) => (
                  <Link
                    key={key}
                    to={pathTo('docs', 'api', chain, name)}
                    isCurrent={key === found?.key}
                  >
                    {name}
                  </Link>
                ))}
              </details>
            ))}
          </div>
          <div>
            <h2>Guide</h2>
            {guides
              .filter(({ name }) => !name.includes('/'))
              .map(({ name, title }) => (
                <Link key={name} to={`docs/guide/${name}`} isCurrent={name === guide}>
                  {title}
                </Link>
              ))}
          </div>
          <details>
            <summary>Decisions</summary>
            {guides
              .filter(({ name }) => name.includes('/'))
              .map(({ name, title }) => (
                <Link key={name} to={`docs/guide/${name}`} isCurrent={name === guide}>
                  {title}
                </Link>
              ))}
          </details>
        </nav>
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
          <DocsSearch operations={loaded.data?.operations ?? []} />
          <div class="top-end">
            <Link to="">Console</Link>
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
        <main ref={main} tabIndex={-1} class="docs">
          <Problem error={loaded.error} onRetry={loaded.reload} />
          {guide ? (
            <GuidePage key={guide} name={guide} />
          ) : operation ? (
            loaded.data ? (
              <OperationPage key={path} operation={found} />
            ) : (
              <Skeleton lines={8} />
            )
          ) : (
            <DocsStart operations={loaded.data?.operations ?? []} />
          )}
        </main>
      </div>
    </div>
  )
}

/** The document of an address: `docs/guide/webhooks`, `docs/guide/decisions/events`. */
const guideNameOf = (path: string): string | undefined => /^docs\/guide\/(.+)$/.exec(path)?.[1]
