import { useLayoutEffect, useRef } from 'preact/hooks'
import { Link } from './link.tsx'

/** Pages beside each other; each has its own address. On a narrow screen the current one is scrolled into view. */
export function LinkTabs(props: {
  label: string
  tabs: readonly { title: string; to: string; isCurrent: boolean }[]
}) {
  const bar = useRef<HTMLElement>(null)
  const current = props.tabs.find(({ isCurrent }) => isCurrent)?.to
  useLayoutEffect(() => {
    const show = () => {
      const tab = bar.current?.querySelector<HTMLElement>('[aria-current]')
      if (bar.current && tab)
        bar.current.scrollLeft = tab.offsetLeft - (bar.current.clientWidth - tab.clientWidth) / 2
    }
    show()
    window.addEventListener('resize', show)
    return () => window.removeEventListener('resize', show)
  }, [current])
  return (
    <nav class="tabs" aria-label={props.label} ref={bar}>
      {props.tabs.map(({ title, to, isCurrent }) => (
        <Link key={to} to={to} isCurrent={isCurrent}>
          {title}
        </Link>
      ))}
    </nav>
  )
}

/** A choice of a few, as buttons. */
export const Choice = (props: {
  label: string
  options: readonly (readonly [value: string, title: string])[]
  value: string
  onChange: (value: string) => void
}) => (
  <fieldset class="choice">
    <legend class="hidden-text">{props.label}</legend>
    {props.options.map(([value, title]) => (
      <button
        key={value}
        type="button"
        aria-pressed={value === props.value}
        onClick={() => props.onChange(value)}
      >
        {title}
      </button>
    ))}
  </fieldset>
)
