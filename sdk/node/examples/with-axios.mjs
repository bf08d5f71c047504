// Creates an order and reads it, with axios 1.12 or later. Arguments: key file, base URL.
import { Signer } from '@proofgate/client';
import axios from 'axios';

const [keyFile, baseURL] = process.argv.slice(2);
const signer = await Signer.open({ keyFile });
const client = axios.create({ baseURL, adapter: 'fetch', env: { fetch: signer.fetch } });

const created = await client.post('/v1/orders', { item: 'book', count: 2 });
const order = await client.get('/v1/orders/17', { params: { q: 'ü /[1]' } });
console.log(created.status, order.status);
