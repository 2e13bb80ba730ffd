'use strict';
// Webhook dispatcher: takes deliveries off a list, resolves the target with the site's resolver, posts.
const dns = require('dns');
const fs = require('fs');
const http = require('http');
const path = require('path');

const RUN = process.env.RUN;
const TARGETS = ['hooks.billing.corp.example', 'crm-in.corp.example', 'audit.corp.example'];

const resolver = new dns.promises.Resolver({ timeout: 4000, tries: 4 });
resolver.setServers([`127.0.0.1:${process.env.RESOLVER_PORT}`]);

const counters = { taken: 0, delivered: 0, failed: 0 };

async function resolveTarget(host) {
  const addresses = await resolver.resolve4(host);
  return addresses[0];
}

function post(address, host, payload) {
  return new Promise((resolve, reject) => {
    const req = http.request({ host: address, method: 'POST', path: '/in', headers: { host } }, (res) => {
      res.resume();
      res.on('end', resolve);
    });
    req.on('error', reject);
    req.end(JSON.stringify(payload));
  });
}

async function deliver(job) {
  const address = await resolveTarget(job.host);
  await post(address, job.host, job.payload);
}

function nextJob() {
  counters.taken++;
  return { host: TARGETS[counters.taken % TARGETS.length], payload: { n: counters.taken } };
}

async function lane(number) {
  for (;;) {
    try {
      await deliver(nextJob());
      counters.delivered++;
    } catch (err) {
      counters.failed++;
      fs.appendFileSync(path.join(RUN, 'dispatcher.log'), `lane ${number}: ${err.code}\n`);
    }
  }
}

setInterval(() => {
  fs.writeFileSync(path.join(RUN, 'dispatcher.json'), JSON.stringify(counters));
}, 1000);

for (let n = 0; n < 3; n++) lane(n);
