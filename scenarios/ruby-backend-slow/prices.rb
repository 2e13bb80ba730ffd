# Asks a server for prices, through net/http of the standard library.
require "net/http"

def fetch_prices(uri)
  Net::HTTP.get(uri)
end

puts fetch_prices(URI("http://127.0.0.1:8080/"))
