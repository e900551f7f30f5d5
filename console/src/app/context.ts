import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { createReference } from '../lib/reference.ts'
import type { Router } from '../lib/router.ts'
import type { Account, Session } from '../lib/session.ts'
import type { createTheme } from '../lib/theme.ts'

/** What every component may use. */
export type App = {
  basePath: string
  baseUrl: string
  router: Router
  session: Session
  reference: ReturnType<typeof createReference>
  theme: ReturnType<typeof createTheme>
}

/** Provided once, around the whole page. */
export const AppContext = createContext<App | undefined>(undefined)

/** The parts of the console. */
export function useApp(): App {
  const app = useContext(AppContext)
  if (!app) throw new Error('The component is outside of the console.')
  return app
}

/** The signed-in account. Pages exist only while there is one. */
export function useAccount(): Account {
  const account = useApp().session.account.value
  if (!account) throw new Error('The page needs an account.')
  return account
}
