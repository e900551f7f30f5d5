import { useState } from 'preact/hooks'
import { type SnippetCall, snippetLanguages, snippetOf } from '../lib/snippets.ts'
import { Code } from './code.tsx'
import { Panel } from './layout.tsx'
import { Choice } from './tabs.tsx'

/** The same call in several languages. */
export function Snippets(props: { call: SnippetCall }) {
  const [language, setLanguage] = useState('curl')
  return (
    <Panel
      title="The same call"
      actions={
        <Choice
          label="Language"
          options={snippetLanguages}
          value={language}
          onChange={setLanguage}
        />
      }
    >
      <Code text={snippetOf(language, props.call)} label={`call in ${language}`} />
    </Panel>
  )
}
