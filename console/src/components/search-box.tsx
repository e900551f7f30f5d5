import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** A search box with its results below. `/` focuses it, the arrow keys move between the results. */
export function SearchBox(props: {
  label: string
  placeholder: string
  maxLength: number
  query: string
  onQuery: (query: string) => void
  isOpen: boolean
  onClose: () => void
  onSubmit: () => void
  children?: ComponentChildren
}) {
  const box = useRef<HTMLDivElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const close = useRef(props.onClose)
  close.current = props.onClose
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest('input,textarea,select')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      input.current?.focus()
    }
    const leave = (event: MouseEvent) => {
      if (!box.current?.contains(event.target as Node)) close.current()
    }
    window.addEventListener('keydown', focus)
    window.addEventListener('mousedown', leave)
    return () => {
      window.removeEventListener('keydown', focus)
      window.removeEventListener('mousedown', leave)
    }
  }, [])
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') props.onClose()
    const links = [...(box.current?.querySelectorAll<HTMLElement>('.search-results a') ?? [])]
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || links.length === 0) return
    event.preventDefault()
    const next = links[links.indexOf(document.activeElement as HTMLElement) + step]
    ;(next ?? input.current)?.focus()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys move between the elements inside
    <div class="search" ref={box} onKeyDown={onKey}>
      <search>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            props.onSubmit()
          }}
        >
          <input
            ref={input}
            type="search"
            aria-label={props.label}
            placeholder={props.placeholder}
            autocomplete="off"
            spellcheck={false}
            maxLength={props.maxLength}
            value={props.query}
            onInput={(event) => props.onQuery(event.currentTarget.value)}
          />
        </form>
      </search>
      {props.isOpen && (
        <div class="search-results" role="status">
          {props.children}
        </div>
      )}
    </div>
  )
}
