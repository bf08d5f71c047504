// Creates an order and reads it, with fetch. Arguments: key file, base URL.
import { Signer } from '@proofgate/client';

const [keyFile, baseUrl] = process.argv.slice(2);
const signer = await Signer.open({ keyFile, throwOnDenial: true });

const created = await signer.fetch(`${baseUrl}/v1/orders`, {
  method: 'POST',
  body: JSON.stringify({ item: 'book', count: 2 }),
});
const order = await signer.fetch(`${baseUrl}/v1/orders/17`);
console.log(created.status, order.status);
