import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useApp } from '../app/context.ts'
import rose from '../assets/rose.svg'
import { nextTheme } from '../lib/theme.ts'
import { MenuIcon, ThemeIcon } from './icons.tsx'
import { Link } from './link.tsx'

/** Navigation at the side, search and switches at the top, and the page between them. */
export function Frame(props: {
  /** Where the name of the service leads. */
  home: string
  navigation: ComponentChildren
  search: ComponentChildren
  /** Beside the switch of the theme. */
  status: ComponentChildren
  mainClass?: string
  children: ComponentChildren
}) {
  const { router, theme } = useApp()
  const [open, setOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const { path } = router.place.value
  useEffect(() => setOpen(false), [path])
  const last = useRef(path)
  useEffect(() => {
    if (last.current === path) return
    last.current = path
    // The link or the dialog that led here may be gone, and the focus with it: the next key continues in the page.
    const timer = setTimeout(() => {
      if (document.activeElement === document.body) main.current?.focus({ preventScroll: true })
    })
    return () => clearTimeout(timer)
  }, [path])
  useEffect(() => {
    if (!open) return
    const close = (event: KeyboardEvent) => event.key === 'Escape' && setOpen(false)
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  }, [open])
  const choice = theme.choice.value
  return (
    <div class="shell">
      <button type="button" class="skip button primary" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <aside class="side" data-open={open} id="navigation">
        <Link to={props.home} class="brand">
          <img src={rose} alt="" />
          Portolan
        </Link>
        {props.navigation}
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
          {props.search}
          <div class="top-end">
            {props.status}
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
        <main ref={main} tabIndex={-1} class={props.mainClass}>
          {props.children}
        </main>
      </div>
    </div>
  )
}
