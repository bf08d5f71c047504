// Creates an order and reads it, with undici. Arguments: key file, base URL.
import { Signer } from '@proofgate/client';
import { Agent, interceptors } from 'undici';

const [keyFile, origin] = process.argv.slice(2);
const signer = await Signer.open({ keyFile });
const dispatcher = new Agent().compose(signer.interceptor(), interceptors.retry());

const created = await dispatcher.request({
  origin,
  path: '/v1/orders',
  method: 'POST',
  body: JSON.stringify({ item: 'book', count: 2 }),
});
await created.body.dump();
const order = await dispatcher.request({ origin, path: '/v1/orders/17', method: 'GET' });
await order.body.dump();
console.log(created.statusCode, order.statusCode);
await dispatcher.close();
