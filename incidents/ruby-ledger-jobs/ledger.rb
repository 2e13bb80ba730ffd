# The ledger database.
require 'socket'
require 'json'
server = UNIXServer.new(File.join(ENV.fetch('RUN'), 'ledger.sock'))
counter = 0
loop do
  Thread.new(server.accept) do |client|
    while (line = client.gets)
      request = JSON.parse(line)
      sleep 0.1 if request['op'] == 'begin'
      counter += 1 if request['op'] == 'next'
      client.puts JSON.generate(ok: true, value: counter)
    end
  end
end
