'use strict';
const net = require('net');
const path = require('path');
const tables = { customers: {}, tiers: { gold: { discount: 0.15 }, basic: { discount: 0.02 } } };
for (let i = 0; i < 40; i++) tables.customers['c' + i] = { tier: i % 5 ? 'basic' : 'gold' };
net.createServer((socket) => {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const { table, key } = JSON.parse(line);
      setTimeout(() => socket.write(JSON.stringify(tables[table][key] || null) + '\n'), 3);
    }
  });
  socket.on('error', () => {});
}).listen(path.join(process.env.RUN, 'ledgerdb.sock'));
