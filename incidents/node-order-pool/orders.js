'use strict';
// Order desk: prices a basket with the customer's discount from the ledger database.
const http = require('http');
const net = require('net');
const fs = require('fs');
const path = require('path');
const genericPool = require('generic-pool');

const RUN = process.env.RUN;
const DB = path.join(RUN, 'ledgerdb.sock');
const PRICES = { bolt: 0.12, nut: 0.09, washer: 0.03, bracket: 2.4 };

class LedgerClient {
  constructor(socket) {
    this.socket = socket;
    this.waiting = [];
    this.rest = '';
    socket.setEncoding('utf8');
    socket.on('data', (text) => this.onData(text));
  }

  static connect() {
    return new Promise((resolve, reject) => {
      const socket = net.connect(DB, () => resolve(new LedgerClient(socket)));
      socket.once('error', reject);
    });
  }

  onData(text) {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop();
    for (const line of lines) this.waiting.shift()(JSON.parse(line));
  }

  query(table, key) {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.socket.write(JSON.stringify({ table, key }) + '\n');
    });
  }

  close() {
    this.socket.end();
  }
}

const ledger = genericPool.createPool(
  { create: () => LedgerClient.connect(), destroy: async (c) => c.close() },
  { max: 4, min: 1 }
);

async function discountFor(customerId) {
  const client = await ledger.acquire();
  const customer = await client.query('customers', customerId);
  if (!customer) return 0;
  const tier = await client.query('tiers', customer.tier);
  await ledger.release(client);
  return tier ? tier.discount : 0;
}

function basketTotal(items) {
  let sum = 0;
  for (const [name, count] of Object.entries(items)) sum += (PRICES[name] || 0) * count;
  return sum;
}

async function priceOrder(order) {
  const discount = await discountFor(order.customer);
  return { order: order.id, total: +(basketTotal(order.items) * (1 - discount)).toFixed(2) };
}

const stats = { accepted: 0, priced: 0 };
const server = http.createServer((req, res) => {
  let body = '';
  req.on('data', (d) => (body += d));
  req.on('end', async () => {
    stats.accepted++;
    const priced = await priceOrder(JSON.parse(body));
    stats.priced++;
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify(priced));
  });
});

setInterval(() => fs.writeFileSync(path.join(RUN, 'orders.stats'), JSON.stringify(stats)), 500);
server.listen(path.join(RUN, 'orders.sock'));
