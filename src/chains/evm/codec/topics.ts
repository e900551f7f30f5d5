import { hash } from 'node:crypto'

const topicOf = (event: string): string => `0x${hash('keccak-256', event, 'hex')}`

/** ERC-20 with three topics, ERC-721 with four. */
export const transferTopic = topicOf('Transfer(address,address,uint256)')
/** ERC-1155, one kind. */
export const singleTopic = topicOf('TransferSingle(address,address,address,uint256,uint256)')
/** ERC-1155, many kinds. */
export const batchTopic = topicOf('TransferBatch(address,address,address,uint256[],uint256[])')
/** Polygon: coin that moved, of its contract 0x1010. */
export const coinTransferTopic = topicOf(
  'LogTransfer(address,address,address,uint256,uint256,uint256,uint256,uint256)',
)
/** ZKsync: coin that came from the other chain, of its contract 0x800a. */
export const coinMintTopic = topicOf('Mint(address,uint256)')
