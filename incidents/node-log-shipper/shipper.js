'use strict';
// Ships access log lines to the collector over TCP, honouring back-pressure.
const fs = require('fs');
const net = require('net');
const path = require('path');
const { once } = require('events');

const RUN = process.env.RUN;

class LineSource {
  constructor() {
    this.seq = 0;
    this.agents = ['okhttp/4.9', 'Mozilla/5.0 (X11; Linux x86_64)', 'curl/7.88'];
  }

  take(count) {
    const lines = [];
    for (let i = 0; i < count; i++) {
      this.seq++;
      lines.push(JSON.stringify({
        seq: this.seq,
        status: this.seq % 19 ? 200 : 404,
        path: `/catalogue/item/${this.seq % 700}`,
        agent: this.agents[this.seq % 3],
        took: (this.seq * 31) % 900,
      }));
    }
    return lines;
  }
}

class CollectorOutput {
  constructor(port) {
    this.port = port;
    this.bytes = 0;
  }

  async open() {
    this.socket = net.connect(this.port, '127.0.0.1');
    await once(this.socket, 'connect');
  }

  async send(lines) {
    const block = lines.join('\n') + '\n';
    this.bytes += block.length;
    if (!this.socket.write(block)) {
      await once(this.socket, 'drain');
    }
  }
}

class Shipper {
  constructor(source, output) {
    this.source = source;
    this.output = output;
    this.batches = 0;
  }

  async shipForever() {
    for (;;) {
      await this.output.send(this.source.take(400));
      this.batches++;
      await new Promise((done) => setTimeout(done, 5));
    }
  }
}

async function main() {
  const output = new CollectorOutput(Number(process.env.COLLECTOR_PORT));
  await output.open();
  const shipper = new Shipper(new LineSource(), output);
  setInterval(() => {
    fs.writeFileSync(path.join(RUN, 'shipper.pos'), `${shipper.batches} ${output.bytes}\n`);
  }, 500);
  await shipper.shipForever();
}

main();
