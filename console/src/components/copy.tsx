import { useEffect, useState } from 'preact/hooks'

/** Copies a text to the clipboard. */
export function Copy(props: { text: string; label?: string; wide?: boolean }) {
  const [state, setState] = useState<'idle' | 'done' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => setState('idle'), 1_500)
    return () => clearTimeout(timer)
  }, [state])
  const copy = () =>
    navigator.clipboard.writeText(props.text).then(
      () => setState('done'),
      () => setState('failed'),
    )
  const said = state === 'done' ? 'Copied' : state === 'failed' ? 'Not copied' : ''
  return (
    <button
      type="button"
      class={props.wide ? 'button small' : 'copy'}
      data-state={state}
      aria-label={props.wide ? undefined : (props.label ?? 'Copy')}
      title={said || props.label || 'Copy'}
      onClick={copy}
    >
      {props.wide ? said || 'Copy' : null}
      <span class="hidden-text" role="status">
        {props.wide ? '' : said}
      </span>
    </button>
  )
}
