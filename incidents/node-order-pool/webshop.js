'use strict';
const http = require('http');
const path = require('path');
let n = 0;
setInterval(() => {
  n++;
  const body = JSON.stringify({ id: n, customer: 'c' + (n % 50), items: { bolt: n % 90, bracket: 2 } });
  const req = http.request({ socketPath: path.join(process.env.RUN, 'orders.sock'), method: 'POST', path: '/order', timeout: 8000 }, (res) => res.resume());
  req.on('timeout', () => req.destroy());
  req.on('error', () => {});
  req.end(body);
}, 40);
