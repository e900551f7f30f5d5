/**
 * Where the catalogue says more, or something else, than the specification's tables, and why. A line
 * reads `T.RegisterAddress request address pattern: theirs -> ours`; `-` is nothing. Every difference
 * must match a row, and every row a difference.
 */
export const differences: readonly { match: RegExp; why: string }[] = [
  {
    match: /^[TSP]\.\w+ request address(es\[\])? pattern: \^0x\[a-f0-9\]\{40\}\$ -> /,
    why: 'T, S and P take the own forms of their chain beside the EVM pattern (2.5 against 4.3).',
  },
  {
    match: /request \S+ (minLength: - -> 1|maxLength: - -> (50|100|200|500|2000|2048))$/,
    why: 'An empty id is a mistake, and nothing of unlimited length comes in.',
  },
  {
    match: /request \S+ (minimum: - -> 0|maximum: - -> 9007199254740991)$/,
    why: 'Heights, nonces and times are not negative; int64 stops where JSON readers lose digits.',
  },
  {
    match: /request page_size minimum: - -> 1$/,
    why: 'A page of nothing never ends.',
  },
  {
    match: /request confirmation maximum: - -> 1000000$/,
    why: 'More confirmations than that are a typing error.',
  },
  {
    match: /\S+ (pattern: - -> \^\(0\|\[1-9\]\[0-9\]\*\)\$|maxLength: - -> 100)$/,
    why: 'Decimal strings are digits without sign, exponent or leading zeros (section 2).',
  },
  {
    match: /^(Q|C)\.\w+ request transaction_hash(es\[\])? pattern: - -> \^0x\[0-9a-fA-F\]\{64\}\$$/,
    why: 'A hash of Q and C has one form; a malformed one is an error, not "not found".',
  },
  {
    match: /^A\.\w+ request chain pattern: - -> /,
    why: 'Chain names are lower case; * is the default of the organization.',
  },
  {
    match: /^C\.CreateTransaction request data pattern: - -> \^0x\(/,
    why: 'Byte data is 0x and two hex digits per byte (2.13).',
  },
  {
    match: /request token_payload\.erc\d+\.contract_address pattern: - -> \^0x\[a-f0-9\]\{40\}\$$/,
    why: 'A contract address is an EVM address (2.10).',
  },
  {
    match: /^C\.CreateTokenTransaction request token_payload required: - -> true$/,
    why: 'Without it there is nothing to send.',
  },
  {
    match: /\.BatchRegisterAddresses request addresses required: - -> true$/,
    why: 'It has 1..1000 items, so it must be there.',
  },
  {
    match: /^Q\.ListTransactions request transaction_hashes (required: - -> true|m..Items: )/,
    why: 'One call reads 1 to 100 transactions.',
  },
  {
    match: /\.BatchRemoveAddresses at least one: - -> addresses remove_all$/,
    why: 'Neither of the two would remove nothing; remove_all needs no addresses.',
  },
  {
    match: /^[TS]\.ImportAsset at least one: - -> address token_address token_account_address$/,
    why: 'The address or its token account is named; a token without either is tracked for all addresses.',
  },
  {
    match:
      /^P\.ImportAsset (at least one: - -> address token_address|request address required: true -> -)$/,
    why: 'A token of P (an extension) without an address is tracked for all addresses, as in T and S.',
  },
  {
    match: /request (is_aggregated|remove_all) default: - -> false$/,
    why: 'A flag that is left out is off.',
  },
  {
    match: /^Q\.\w+ response (\S+\.)?(to|contract_address) type: string -> string\|null$/,
    why: 'A contract creation has no receiver, and only a creation has a contract (2.13).',
  },
  {
    match: /response webhook_histories\[\]\.delivery_time type: string -> string\|null$/,
    why: 'There is no time of delivery before the first attempt.',
  },
  {
    match:
      /response \S*(transaction_state|webhook_status|transfer_state|transfer_type) enum: - -> /,
    why: 'Section 3 shows one value each; the whole lists are decided here.',
  },
  {
    match: /^C\.ListContracts response contracts\[\]\.contract_metadata\.\S+ is extra$/,
    why: 'The shape of contract_metadata is not shown.',
  },
  {
    match: /^C\.\w+ response \S+\.erc20\.decimals optional: - -> true$/,
    why: 'An ERC-20 need not have decimals(): 0 in its place would be a guess about amounts.',
  },
  {
    match: /^A\.\w+ response \S*per_\w+_limit (minimum: - -> -1|maximum: )/,
    why: 'A limit of -1 is unlimited.',
  },
  {
    match: /response \S+\.delivery_count (minimum: - -> 0|maximum: )/,
    why: 'Attempts are counted from zero.',
  },
  {
    match: /^evm_get(Balance|StorageAt|TransactionCount|Code) \(.*, block\) -> \(.*, block\?\)$/,
    why: 'Clients leave the block out, and most nodes read that as latest.',
  },
  {
    match: /^evm_subscribe \(subscription, options\) -> \(subscription, options\?\)$/,
    why: 'Clients in use leave the options out where a subscription has none.',
  },
]
