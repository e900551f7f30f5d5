import { ChannelCredentials } from '@grpc/grpc-js'
import { SuiGrpcClient } from '@mysten/sui/grpc'
import { fromBase58 } from '@mysten/sui/utils'
import { GrpcTransport } from '@protobuf-ts/grpc-transport'

/** The chain identifier of a Sui node: the first four bytes of its genesis digest. */
export async function askSui(url: string, timeoutMs: number): Promise<string> {
  const { host, protocol } = new URL(url)
  const transport = new GrpcTransport({
    host,
    channelCredentials:
      protocol === 'https:' ? ChannelCredentials.createSsl() : ChannelCredentials.createInsecure(),
  })
  try {
    const client = new SuiGrpcClient({ network: 'custom', transport })
    const { response } = await client.ledgerService.getServiceInfo({}, { timeout: timeoutMs })
    if (!response.chainId) throw new Error('it does not tell its chain')
    return Buffer.from(fromBase58(response.chainId)).toString('hex', 0, 4)
  } finally {
    transport.close()
  }
}
