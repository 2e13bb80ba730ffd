# Transcode batch: converts the day's recordings one by one with an external converter whose
# share of the processor is bounded by the site's throttle.
require 'fileutils'
require 'json'
require 'open3'

RUN = ENV.fetch('RUN')
INBOX = File.join(RUN, 'recordings')
DONE = File.join(RUN, 'done')

Recording = Struct.new(:path, :title, :seconds) do
  def self.load(path)
    meta = JSON.parse(File.read(path))
    new(path, meta.fetch('title'), meta.fetch('seconds'))
  end

  def target
    File.join(DONE, "#{title}.opus")
  end
end

class Throttle
  def initialize(percent)
    @percent = percent
  end

  # starts the throttle for a process; it runs beside us and ends by itself
  def attach(pid)
    throttle = Process.spawn('./cputhrottle', pid.to_s, @percent.to_s, %i[out err] => File.join(RUN, 'throttle.log'))
    Process.detach(throttle)
  end
end

class Converter
  def initialize(throttle)
    @throttle = throttle
  end

  def convert(recording)
    log = File.join(RUN, "#{recording.title}.log")
    pid = Process.spawn('./wav2opus', recording.path, recording.target, %i[out err] => log)
    @throttle.attach(pid)
    _, status = Process.wait2(pid)
    raise "converter ended with #{status.exitstatus}" unless status.success?
    File.size(recording.target)
  end
end

class Batch
  def initialize(converter)
    @converter = converter
    @bytes = 0
  end

  def recordings
    Dir.glob(File.join(INBOX, '*.json')).sort.map { |path| Recording.load(path) }
  end

  def run_once
    recordings.each do |recording|
      size = @converter.convert(recording)
      @bytes += size
      FileUtils.rm(recording.path)
      puts "#{recording.title}: #{recording.seconds} s, #{size} bytes, #{@bytes} in all"
    end
  end
end

$stdout.sync = true
FileUtils.mkdir_p(DONE)
batch = Batch.new(Converter.new(Throttle.new(25)))
loop do
  batch.run_once
  sleep 2
end
