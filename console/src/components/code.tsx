import { Copy } from './copy.tsx'

/** A block of text or code that can be copied. It is always text, whatever is in it. */
export const Code = (props: { text: string; label: string }) => (
  <div class="code">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard */}
    <pre tabIndex={0} role="region" aria-label={props.label}>
      <code>{props.text}</code>
    </pre>
    <Copy text={props.text} wide label={`Copy ${props.label}`} />
  </div>
)
