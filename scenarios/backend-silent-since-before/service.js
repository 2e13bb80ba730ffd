// `service.js backend PORT`: accepts connections, and answers nothing.
// `service.js front PORT BACKEND`: one event loop, which answers / at once and fetches any other page from BACKEND.
// `service.js client PORT PATH`: asks for PATH. Each says "ready" on descriptor 3, the client when it has the answer to /, or when
// of another path nothing is left in a socket's queue.
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const [role, port, other] = process.argv.slice(2);
const ready = () => fs.writeSync(3, 'ready\n');

function waitsUnread(own) {
    const rows = fs.readFileSync('/proc/net/tcp', 'ascii').split('\n').map((row) => row.trim().split(/\s+/));
    const end = ':' + own.toString(16).toUpperCase().padStart(4, '0');
    const theirs = rows.find((row) => row.length > 4 && row[2].endsWith(end) && row[3] === '01');
    return !theirs || parseInt(theirs[4].split(':')[1], 16) > 0;
}

if (role === 'backend') {
    net.createServer(() => {}).listen(Number(port), '127.0.0.1', ready);
} else if (role === 'front') {
    http.createServer((request, response) => {
        if (request.url === '/') return response.end('0\n');
        http.get({ host: '127.0.0.1', port: Number(other) }, (answer) => answer.pipe(response));
    }).listen(Number(port), '127.0.0.1', ready);
} else {
    const request = http.get({ host: '127.0.0.1', port: Number(port), path: other, agent: new http.Agent({ keepAlive: true }) });
    request.on('response', (answer) => answer.resume().on('end', ready));
    if (other !== '/') {
        request.on('socket', (socket) => socket.on('connect', () => {
            const look = () => (waitsUnread(socket.localPort) ? setImmediate(look) : ready());
            request.on('finish', look);
        }));
    }
    setInterval(() => {}, 1000000);
}
