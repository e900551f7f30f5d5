import { effect, type Signal, signal } from '@preact/signals'

/** A theme of choice, or that of the system. */
export type ThemeChoice = 'system' | 'light' | 'dark'

const storageKey = 'portolan-theme'
const choices: readonly ThemeChoice[] = ['system', 'light', 'dark']

/** Keeps `data-theme` of the document as chosen; returns the choice. */
export function createTheme(window: Window): { choice: Signal<ThemeChoice>; stop(): void } {
  const dark = window.matchMedia('(prefers-color-scheme: dark)')
  const system = signal(dark.matches)
  const choice = signal<ThemeChoice>(stored(window))
  const onChange = () => {
    system.value = dark.matches
  }
  dark.addEventListener('change', onChange)
  const end = effect(() => {
    const isDark = choice.value === 'dark' || (choice.value === 'system' && system.value)
    window.document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
    try {
      window.localStorage.setItem(storageKey, choice.value)
    } catch {
      // A browser without storage keeps the choice until it is closed.
    }
  })
  return {
    choice,
    stop: () => {
      end()
      dark.removeEventListener('change', onChange)
    },
  }
}

/** The next choice of a button that goes around. */
export const nextTheme = (choice: ThemeChoice): ThemeChoice =>
  choices[(choices.indexOf(choice) + 1) % choices.length] ?? 'system'

function stored(window: Window): ThemeChoice {
  try {
    const value = window.localStorage.getItem(storageKey)
    return choices.find((choice) => choice === value) ?? 'system'
  } catch {
    return 'system'
  }
}
