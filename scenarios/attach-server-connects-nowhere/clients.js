// `clients.js PORT`: one client asks for /page four times a second, whether or not it is answered, and another for / every 20 ms on a
// connection that it keeps. Says "ready" on descriptor 3 when the first question has been asked.
const fs = require('node:fs');
const http = require('node:http');
const [port] = process.argv.slice(2);
const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });
const ask = (path, agent) => {
    const asked = http.get({ host: '127.0.0.1', port, path, agent }, (answer) => answer.resume());
    asked.on('error', () => {});
    return asked;
};
ask('/page', false).on('finish', () => fs.writeSync(3, 'ready\n'));
setInterval(() => ask('/page', false), 250);
setInterval(() => ask('/', kept), 20);
