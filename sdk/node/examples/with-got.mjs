// Creates an order and reads it, with got. Arguments: key file, base URL.
import { Signer } from '@proofgate/client';
import got from 'got';

const [keyFile, baseUrl] = process.argv.slice(2);
const signer = await Signer.open({ keyFile });

// got calls it for each attempt. A redirect would need another signature, so none is followed.
const sign = async (options) => {
  const { body, headers, method, url } = options;
  Object.assign(headers, await signer.sign({ method, url, headers, body }));
};
const client = got.extend({ followRedirect: false, hooks: { beforeRequest: [sign] } });

const created = await client.post(`${baseUrl}/v1/orders`, { json: { item: 'book', count: 2 } });
const order = await client.get(`${baseUrl}/v1/orders/17?q=ü [1]`);
console.log(created.statusCode, order.statusCode);
