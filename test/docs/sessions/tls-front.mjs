/** `tls-front.mjs HOST:PORT CERT KEY HOST:PORT`: terminates TLS and forwards the bytes. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer } from 'node:tls';

const [at, cert, key, to] = process.argv.slice(2);
const [host, port] = at.split(':');
const [toHost, toPort] = to.split(':');
const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
  const behind = connect(Number(toPort), toHost);
  for (const one of [socket, behind]) one.on('error', () => {});
  socket.pipe(behind).pipe(socket);
});
server.listen(Number(port), host);
