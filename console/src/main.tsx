// The web console. It runs in the browser and uses the service through `@portolan/client`, the API reference and the
// routes of the embedded mode only. The secret of a credential stays in memory, or in a key that cannot be exported.

import { render } from 'preact'
import { AppContext } from './app/context.ts'
import { Root } from './app/root.tsx'
import { createReference } from './lib/reference.ts'
import { createRouter } from './lib/router.ts'
import { createSession } from './lib/session.ts'
import { createTheme } from './lib/theme.ts'
import './styles/tokens.css'
import './styles/shell.css'
import './styles/layout.css'
import './styles/buttons.css'
import './styles/forms.css'
import './styles/tables.css'
import './styles/text.css'
import './styles/messages.css'
import './styles/tabs.css'
import './styles/code.css'

const basePath =
  document.querySelector<HTMLMetaElement>('meta[name=portolan-base-path]')?.content ?? ''
const baseUrl = location.origin + basePath
const app = {
  basePath,
  baseUrl,
  router: createRouter(window, basePath),
  session: createSession(baseUrl),
  reference: createReference(baseUrl),
  theme: createTheme(window),
}
const place = document.getElementById('app')
if (place)
  render(
    <AppContext.Provider value={app}>
      <Root />
    </AppContext.Provider>,
    place,
  )
