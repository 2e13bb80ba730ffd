# Posts invoices to the ledger: job threads share a small pool of database sessions.
require 'socket'
require 'json'

RUN = ENV.fetch('RUN')

class LedgerSession
  def initialize(path)
    @socket = UNIXSocket.new(path)
  end

  def call(op, payload)
    @socket.puts(JSON.generate(op: op, payload: payload))
    JSON.parse(@socket.gets)
  end
end

class SessionPool
  def initialize(size)
    @idle = Array.new(size) { yield }
    @mutex = Mutex.new
    @available = ConditionVariable.new
  end

  def with
    session = checkout
    begin
      yield session
    ensure
      checkin(session)
    end
  end

  private

  def checkout
    @mutex.synchronize do
      @available.wait(@mutex) while @idle.empty?
      @idle.pop
    end
  end

  def checkin(session)
    @mutex.synchronize do
      @idle.push(session)
      @available.signal
    end
  end
end

class Sequence
  def initialize(pool)
    @pool = pool
  end

  def next_number(series)
    @pool.with { |session| session.call('next', series)['value'] }
  end
end

class PostInvoice
  def initialize(pool, stats)
    @pool = pool
    @numbers = Sequence.new(pool)
    @stats = stats
  end

  def perform(invoice)
    @pool.with do |session|
      session.call('begin', invoice[:id])
      number = @numbers.next_number(invoice[:series])
      session.call('post', invoice.merge(number: number))
    end
    @stats[:posted] += 1
  end
end

stats = { posted: 0 }
pool = SessionPool.new(4) { LedgerSession.new(File.join(RUN, 'ledger.sock')) }
queue = Queue.new
workers = 4.times.map do |n|
  Thread.new do
    Thread.current.name = "job-#{n}"
    job = PostInvoice.new(pool, stats)
    loop { job.perform(queue.pop) }
  end
end
intake = Thread.new do
  Thread.current.name = 'intake'
  id = 0
  loop do
    4.times { queue << { id: (id += 1), series: 'INV-2024', total: id * 3.5 } }
    sleep 0.5
  end
end
loop do
  File.write(File.join(RUN, 'jobs.stats'), "posted=#{stats[:posted]} waiting=#{queue.size}\n")
  sleep 1
end
