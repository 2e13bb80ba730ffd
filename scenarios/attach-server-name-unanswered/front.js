// `front.js PORT`: one event loop, which answers / at once and looks up a name before it answers /page. Says "ready" on descriptor 3.
const dns = require('node:dns');
const fs = require('node:fs');
const http = require('node:http');
const [port] = process.argv.slice(2);

function findDatabase(response) {
    dns.resolve4('db.shop.test', (error) => response.end(error ? 'unknown\n' : 'found\n'));
}
const server = http.createServer((request, response) => {
    if (request.url === '/') return response.end('0\n');
    findDatabase(response);
});
server.listen(Number(port), '127.0.0.1', () => fs.writeSync(3, 'ready\n'));
