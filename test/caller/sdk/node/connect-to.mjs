/** Preloaded into a program: its connections go to `PROOFGATE_TEST_CONNECT_TO`, such as `127.0.0.1:8080`, whatever it asks for. */
import net from 'node:net';

const { connect } = net;
const [host, port] = process.env.PROOFGATE_TEST_CONNECT_TO.split(':');
net.connect = (options, ...others) => connect({ ...options, host, port: Number(port) }, ...others);
