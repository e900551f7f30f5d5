import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { CloseIcon } from './icons.tsx'

/** A dialog of the browser: it keeps the focus and closes by Escape. */
export function Dialog(props: {
  title: string
  onClose: () => void
  children?: ComponentChildren
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    ref.current?.showModal()
  }, [])
  return (
    <dialog ref={ref} class="dialog" aria-labelledby={id} onClose={props.onClose}>
      <div class="dialog-head">
        <h2 id={id}>{props.title}</h2>
        <button
          type="button"
          class="button quiet icon-button"
          aria-label="Close"
          onClick={() => ref.current?.close()}
        >
          <CloseIcon />
        </button>
      </div>
      {props.children}
    </dialog>
  )
}
