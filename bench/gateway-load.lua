-- Asks one question after the other, or always the same: for a block, or for the result of a call.
local same = os.getenv('SAME') == '1'
local calls = os.getenv('KIND') == 'call'
local pause = tonumber(os.getenv('PAUSE') or '0')
local count = tonumber(os.getenv('START') or '1')
wrk.method = 'POST'
wrk.headers['content-type'] = 'application/json'
request = function()
  if not same then count = count + 1 end
  local question = calls
    and string.format('"eth_call","params":[{"to":"0x%040x","data":"0x%064x"},"latest"]', 4096, count)
    or string.format('"eth_getBlockByNumber","params":["0x%x",false]', count)
  return wrk.format(nil, nil, nil, '{"jsonrpc":"2.0","id":' .. count .. ',"method":' .. question .. '}')
end
-- Of random length, so that the connections do not come in step.
if pause > 0 then delay = function() return math.floor(math.random() * 2 * pause + 0.5) end end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.status + errors.read + errors.write + errors.timeout + errors.connect
  io.write(string.format('{"requests":%d,"failed":%d,"refused":%d,"p50":%f,"p99":%f}\n', summary.requests, failed, errors.status, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
