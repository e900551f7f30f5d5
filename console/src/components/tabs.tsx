import { Link } from './link.tsx'

/** Pages beside each other; each has its own address. */
export const LinkTabs = (props: {
  label: string
  tabs: readonly { title: string; to: string; isCurrent: boolean }[]
}) => (
  <nav class="tabs" aria-label={props.label}>
    {props.tabs.map(({ title, to, isCurrent }) => (
      <Link key={to} to={to} isCurrent={isCurrent}>
        {title}
      </Link>
    ))}
  </nav>
)

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
