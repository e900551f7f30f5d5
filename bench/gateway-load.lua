-- Asks for one block after the other, or always for the same one.
local same = os.getenv('SAME') == '1'
local count = tonumber(os.getenv('START') or '1')
wrk.method = 'POST'
wrk.headers['content-type'] = 'application/json'
request = function()
  if not same then count = count + 1 end
  local body = '{"jsonrpc":"2.0","id":' .. count .. ',"method":"eth_getBlockByNumber","params":["0x' .. string.format('%x', count) .. '",false]}'
  return wrk.format(nil, nil, nil, body)
end
done = function(summary, latency)
  local failed = summary.errors.status + summary.errors.read + summary.errors.write + summary.errors.timeout + summary.errors.connect
  io.write(string.format('{"requests":%d,"failed":%d,"p50":%f,"p99":%f}\n', summary.requests, failed, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
