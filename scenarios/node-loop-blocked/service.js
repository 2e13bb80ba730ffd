// An HTTP service of one thread: `service.js PORT FILE`. A page but `/` needs a lock on the file, for which another program is
// run and waited for, and all other clients wait. Says "ready" on descriptor 3.
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const [port, file] = process.argv.slice(2);

http.createServer(function answer(request, response) {
    if (request.url !== '/') execFileSync('flock', [file, 'true']);
    response.end('5\n');
}).listen(Number(port), '127.0.0.1', () => fs.writeSync(3, 'ready\n'));
setInterval(() => {}, 500);
