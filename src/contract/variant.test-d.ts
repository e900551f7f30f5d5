import Type, { type Static, type TObject } from 'typebox'
import type { Request } from './operation.ts'
import type { Catalogue, Row } from './operations/catalogue.ts'
import { each, list, only, type PropertiesIn, record } from './variant.ts'

type Equal<a, b> =
  (<x>() => x extends a ? 1 : 2) extends <x>() => x extends b ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const fields = {
  id: Type.String(),
  flag: only('TS', Type.Optional(Type.Boolean())),
  kind: each({ T: Type.Enum(['T1', 'T2']), C: Type.Integer() }),
  inner: list(record('Inner', { a: only('C', Type.String()), b: Type.Null() })),
}
type In<tag extends 'T' | 'S' | 'C'> = Static<TObject<PropertiesIn<typeof fields, tag>>>

// Each service has its own type.
isTrue<Equal<keyof In<'T'>, 'id' | 'flag' | 'kind' | 'inner'>>()
isTrue<Equal<keyof In<'S'>, 'id' | 'flag' | 'inner'>>()
isTrue<Equal<keyof In<'C'>, 'id' | 'kind' | 'inner'>>()
isTrue<Equal<In<'T'>['kind'], 'T1' | 'T2'>>()
isTrue<Equal<In<'C'>['kind'], number>>()
isTrue<Equal<keyof In<'T'>['inner'][number], 'b'>>()
isTrue<Equal<keyof In<'C'>['inner'][number], 'a' | 'b'>>()
;({ id: '', inner: [] }) satisfies In<'S'>
// @ts-expect-error an optional field is absent, never undefined
;({ id: '', inner: [], flag: undefined }) satisfies In<'S'>

// Operations are there only in their services.
isTrue<Equal<Extract<keyof Catalogue<'c'>, 'GetAddress' | 'ImportAsset'>, never>>()
isTrue<Equal<Extract<keyof Catalogue<'p'>, 'GetAddress' | 'ImportAsset'>, 'ImportAsset'>>()
isTrue<Equal<Extract<keyof Catalogue<'t'>, 'UpdateConfirmation'>, never>>()
isTrue<Equal<Extract<keyof Catalogue<'q'>, 'RegisterWallet'>, never>>()

// Rows keep their literal types for handlers.
isTrue<Equal<Request<Row<'c', 'GetWallet'>, 'C'>, Catalogue<'c'>['GetWallet']['request']>>()
isTrue<Equal<Catalogue<'t'>['ListAssets']['request']['asset_type'], 'ASSET_TYPE_T'>>()
isTrue<
  Equal<
    Catalogue<'c'>['CreateTokenTransaction']['request']['contract_type'],
    'CONTRACT_TYPE_ERC20' | 'CONTRACT_TYPE_ERC721'
  >
>()
