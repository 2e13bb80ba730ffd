// `clients.js page PORT`: one client asks for /page again and again, and another for / every 20 ms on a connection that it keeps.
// `clients.js much PORT`: an HTTP/2 client asks for much every 300 ms. It tells the server afterwards how much more it may send,
// to which there is no answer. Says "ready" on descriptor 3 when the first answer has come.
const fs = require('node:fs');
const http = require('node:http');
const http2 = require('node:http2');
const [role, port] = process.argv.slice(2);
let told = false;
const answered = () => {
    if (!told) fs.writeSync(3, 'ready\n');
    told = true;
};

if (role === 'page') {
    const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (path, agent, then) => {
        http.get({ host: '127.0.0.1', port, path, agent }, (answer) => answer.resume().on('end', then));
    };
    const page = () => ask('/page', false, () => { answered(); page(); });
    page();
    setInterval(() => ask('/', kept, () => {}), 20);
} else {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const ask = () => session.request({ ':path': '/' }).on('end', answered).resume().end();
    ask();
    setInterval(ask, 300);
}
