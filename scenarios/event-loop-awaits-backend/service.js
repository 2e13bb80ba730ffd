// `service.js backend PORT DELAY`: answers each HTTP request after DELAY milliseconds.
// `service.js front PORT BACKEND`: one event loop, which answers / at once and fetches /page from BACKEND. On PORT + 1 it speaks
// HTTP/2 and sends much at once. Both say "ready" on descriptor 3.
const fs = require('node:fs');
const http = require('node:http');
const http2 = require('node:http2');
const [role, port, other] = process.argv.slice(2);
const ready = () => fs.writeSync(3, 'ready\n');

if (role === 'backend') {
    const answer = (request, response) => setTimeout(() => response.end('5\n'), Number(other));
    http.createServer(answer).listen(Number(port), '127.0.0.1', ready);
} else {
    const much = Buffer.alloc(200000, 'x');
    const front = http.createServer((request, response) => {
        if (request.url === '/') return response.end('0\n');
        http.get({ host: '127.0.0.1', port: Number(other) }, (answer) => answer.pipe(response));
    });
    const front2 = http2.createServer();
    front2.on('stream', (stream) => {
        stream.respond({ ':status': 200 });
        stream.end(much);
    });
    front2.listen(Number(port) + 1, '127.0.0.1', () => front.listen(Number(port), '127.0.0.1', ready));
}
