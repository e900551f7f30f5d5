/**
 * The tables of section 4.5, transcribed manually: method, params (`?` is optional), result. A block
 * number of getBlockByNumber and its kin is written as a default block parameter.
 */
export const httpMethods = `
web3_clientVersion () string
net_version () string
net_peerCount () quantity
net_listening () boolean
evm_protocolVersion () string
evm_syncing () syncing
evm_gasPrice () quantity
evm_blockNumber () quantity
evm_getBalance (address, block) quantity
evm_getStorageAt (address, quantity, block) data
evm_getTransactionCount (address, block) quantity
evm_getBlockTransactionCountByHash (hash) quantity
evm_getBlockTransactionCountByNumber (block) quantity
evm_getUncleCountByBlockHash (hash) quantity
evm_getUncleCountByBlockNumber (block) quantity
evm_getCode (address, block) data
evm_sendRawTransaction (data) hash
evm_call (call, block?) data
evm_estimateGas (call, block?) quantity
evm_getBlockByHash (hash, boolean) block or null
evm_getBlockByNumber (block, boolean) block or null
evm_getTransactionByHash (hash) transaction or null
evm_getTransactionByBlockHashAndIndex (hash, quantity) transaction or null
evm_getTransactionByBlockNumberAndIndex (block, quantity) transaction or null
evm_getTransactionReceipt (hash) receipt or null
evm_getUncleByBlockHashAndIndex (hash, quantity) block or null
evm_getUncleByBlockNumberAndIndex (block, quantity) block or null
evm_getLogs (filter) logs
`

/** The WebSocket table of section 4.5. */
export const webSocketMethods = `
evm_newBlockFilter () filter id
evm_newFilter (filter) filter id
evm_newPendingTransactionFilter () filter id
evm_getFilterChanges (filterId) changes
evm_uninstallFilter (filterId) boolean
evm_subscribe (subscription, options) subscription id
evm_unsubscribe (filterId) boolean
`

/** The subscriptions of section 6.2. */
export const subscriptionNames = ['newHeads', 'logs', 'newPendingTransactions', 'syncing']

/** When the connection is closed (6.2.3, section 8). */
export const notificationLimit = 10000
