// `front.js PORT HOST BACKEND`: one event loop, which answers / at once and fetches /page from BACKEND at HOST. Says "ready" on
// descriptor 3.
const fs = require('node:fs');
const http = require('node:http');
const [port, host, backend] = process.argv.slice(2);

const server = http.createServer((request, response) => {
    if (request.url === '/') return response.end('0\n');
    const asked = http.get({ host, port: Number(backend), agent: false }, (answer) => answer.pipe(response));
    asked.on('error', () => response.destroy());
});
server.listen(Number(port), '127.0.0.1', () => fs.writeSync(3, 'ready\n'));
