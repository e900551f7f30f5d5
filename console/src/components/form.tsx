import { PortolanError } from '@portolan/client'
import type { ComponentChildren } from 'preact'
import { useId, useMemo, useState } from 'preact/hooks'
import {
  type FieldProblem,
  type FormField,
  type FormValues,
  fieldsOf,
  initialValues,
  type JsonSchema,
  problemsOf,
  requestOf,
} from '../lib/schema.ts'
import { useTask } from '../lib/use-task.ts'
import { Problem } from './problem.tsx'
import { Words } from './text.tsx'

/** A form for the request that a schema describes. Errors of the service stand at their field. */
export function SchemaForm(props: {
  schema: JsonSchema
  submit: string
  /** Values that the page knows; those in `fixed` are not shown. */
  known?: Readonly<Record<string, unknown>>
  fixed?: readonly string[]
  onSubmit: (request: Record<string, unknown>) => Promise<unknown>
  onChange?: (request: Record<string, unknown>) => void
  children?: ComponentChildren
}) {
  const fields = useMemo(() => fieldsOf(props.schema), [props.schema])
  const [values, setValues] = useState<FormValues>(() => initialValues(props.schema, props.known))
  const [problems, setProblems] = useState<readonly FieldProblem[]>([])
  const { busy, error, run, forget } = useTask(async (request: Record<string, unknown>) => {
    try {
      await props.onSubmit(request)
    } catch (failure) {
      if (failure instanceof PortolanError) setProblems(failure.errors)
      throw failure
    }
  })
  const change = (path: string, value: FormValues[string]) => {
    const next = { ...values, [path]: value }
    setValues(next)
    props.onChange?.(requestOf(fields, next).request)
  }
  const submit = (event: Event) => {
    event.preventDefault()
    const { request, problems: found } = requestOf(fields, values)
    setProblems(found)
    if (found.length > 0) forget()
    else void run(request)
  }
  const shown = fields.filter(({ name }) => !props.fixed?.includes(name))
  const atFields = shown.some(({ path }) => problemsOf(problems, path).length > 0)
  return (
    <form class="form" noValidate onSubmit={submit}>
      {shown.map((field) => (
        <SchemaField
          key={field.path}
          field={field}
          values={values}
          problems={problems}
          onChange={change}
        />
      ))}
      {props.children}
      {error !== undefined &&
        !(atFields && error instanceof PortolanError && error.errors.length) && (
          <Problem error={error} />
        )}
      <div class="actions">
        <button type="submit" class="button primary" disabled={busy} aria-busy={busy}>
          {props.submit}
        </button>
      </div>
    </form>
  )
}

type FieldProps = {
  field: FormField
  values: FormValues
  problems: readonly FieldProblem[]
  onChange: (path: string, value: FormValues[string]) => void
}

function SchemaField(props: FieldProps) {
  const { field, values, problems, onChange } = props
  const id = useId()
  if (field.kind === 'group')
    return (
      <fieldset class="group">
        <legend>{field.name}</legend>
        {field.description && (
          <p class="hint">
            <Words text={field.description} />
          </p>
        )}
        {field.fields.map((inner) => (
          <SchemaField key={inner.path} {...props} field={inner} />
        ))}
      </fieldset>
    )
  const complaints = problemsOf(problems, field.path)
  // A complaint in the words of the hint takes its place.
  const hint = complaints.some(({ detail }) => detail === field.description)
    ? undefined
    : field.description
  const described = [
    (hint || field.leftOut) && `${id}-hint`,
    complaints.length > 0 && `${id}-error`,
  ]
    .filter(Boolean)
    .join(' ')
  const common = {
    id,
    'aria-describedby': described || undefined,
    'aria-invalid': complaints.length > 0 || undefined,
    'aria-required': field.required || undefined,
  }
  const value = values[field.path]
  return (
    <div class="field" data-kind={field.kind} data-bad={complaints.length > 0 || undefined}>
      <label for={id}>
        {field.name}
        {field.required ? (
          <span class="needed"> required</span>
        ) : field.needsOne ? (
          <span class="needed"> one of these</span>
        ) : null}
      </label>
      <Input field={field} value={value} common={common} onChange={onChange} />
      {(hint || field.leftOut) && (
        <p class="hint" id={`${id}-hint`}>
          <Words text={hint ?? ''} />
          {field.leftOut && (
            <>
              {hint && ' · '}left out: <Words text={field.leftOut} />
            </>
          )}
        </p>
      )}
      {complaints.length > 0 && (
        <p class="field-error" id={`${id}-error`} role="alert">
          <Words text={complaints.map(({ detail }) => detail).join(' ')} />
        </p>
      )}
    </div>
  )
}

function Input(props: {
  field: FormField
  value: FormValues[string] | undefined
  common: Record<string, unknown> & { id: string }
  onChange: FieldProps['onChange']
}) {
  const { field, value, common, onChange } = props
  const set = (event: Event) =>
    onChange(field.path, (event.currentTarget as HTMLInputElement).value)
  if (field.kind === 'flag')
    return (
      <input
        {...common}
        type="checkbox"
        checked={value === true}
        onChange={(event) => onChange(field.path, event.currentTarget.checked)}
      />
    )
  if (field.kind === 'choice')
    return (
      <select {...common} value={String(value ?? '')} onChange={set}>
        {!field.required && <option value="">–</option>}
        {field.required && value === undefined && <option value="">Choose</option>}
        {field.choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    )
  if (field.kind === 'choices') {
    const chosen = Array.isArray(value) ? value : []
    return (
      <fieldset class="checks" {...common} aria-label={field.name}>
        {field.choices.map((choice) => (
          <label key={choice}>
            <input
              type="checkbox"
              checked={chosen.includes(choice)}
              onChange={(event) =>
                onChange(
                  field.path,
                  event.currentTarget.checked
                    ? [...chosen, choice]
                    : chosen.filter((one) => one !== choice),
                )
              }
            />
            {choice}
          </label>
        ))}
      </fieldset>
    )
  }
  const text = Array.isArray(value) ? value.join('\n') : String(value ?? '')
  const plain = { autocomplete: 'off', spellcheck: false, autocapitalize: 'off' } as const
  if (field.kind === 'lines')
    return <textarea {...common} {...plain} rows={4} value={text} onInput={set} />
  return (
    <input
      {...common}
      {...plain}
      type="text"
      inputMode={field.kind === 'integer' ? 'numeric' : undefined}
      maxLength={field.maxLength && field.maxLength < 10_000 ? field.maxLength : undefined}
      value={text}
      onInput={set}
    />
  )
}
