# Catalogue import: reads the supplier's rows and passes them to a writer thread through a bounded queue.
require 'csv'
require 'time'

RUN = ENV.fetch('RUN')

class SupplierFile
  COLOURS = %w[red green blue black].freeze

  def each_row
    return enum_for(:each_row) unless block_given?

    5000.times do |n|
      price = n == 730 ? 'on request' : format('%.2f', (n % 400) / 3.0)
      yield({ sku: "S#{n}", colour: COLOURS[n % 4], price: price })
    end
  end
end

class CatalogWriter
  attr_reader :written

  def initialize(path, queue)
    @path = path
    @queue = queue
    @written = 0
  end

  def start
    @thread = Thread.new { drain }
    @thread.name = 'catalog-writer'
    @thread.report_on_exception = false
    self
  end

  def drain
    CSV.open(@path, 'w') do |csv|
      while (row = @queue.pop)
        cents = (Float(row[:price]) * 100).round
        csv << [row[:sku], row[:colour], cents]
        @written += 1
      end
    end
  end

  def finish
    @queue << nil
    @thread.join
  end
end

class Importer
  attr_reader :read

  def initialize(file, queue)
    @file = file
    @queue = queue
    @read = 0
  end

  def normalise(row)
    row.merge(sku: row[:sku].downcase)
  end

  def import
    @file.each_row do |row|
      @queue.push(normalise(row))
      @read += 1
    end
  end
end

queue = SizedQueue.new(100)
writer = CatalogWriter.new(File.join(RUN, 'catalog.csv'), queue).start
importer = Importer.new(SupplierFile.new, queue)
progress = Thread.new do
  loop do
    File.write(File.join(RUN, 'progress'), "read=#{importer.read} written=#{writer.written} #{Time.now.iso8601}\n")
    sleep 0.5
  end
end
progress.name = 'progress'
importer.import
writer.finish
