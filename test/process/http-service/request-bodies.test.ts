/** Bodies of Control and the broker: one limit for all that are incomplete, and a share for each caller. */
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import fastify, { type FastifyInstance } from 'fastify';
import { problemAnswers } from '../../../src/process/http-service/problem-answers.ts';
import { RequestBodies } from '../../../src/process/http-service/request-bodies.ts';
import { waitFor } from '../../support/wait.ts';

const MAX_BYTES = 2_000;
let app: FastifyInstance;
let port: number;
const sockets: Socket[] = [];

beforeEach(async () => {
  app = fastify({ bodyLimit: MAX_BYTES, forceCloseConnections: true });
  const caller = ({ headers }: { readonly headers: { readonly authorization?: string | undefined } }) =>
    headers.authorization;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', new RequestBodies(caller).parseJson);
  app.setErrorHandler(problemAnswers({}).answerError);
  app.decorateRequest('bodyHash', '');
  app.post('/', async ({ body }) => ({ received: body }));
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await app.close();
});

function send(lines: string, body: string): { readonly text: () => string; readonly socket: Socket } {
  let text = '';
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  sockets.push(socket);
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${lines}\r\n${body}`);
  return { text: () => text, socket };
}

const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const oneByOne = (text: string) => [...text].map((byte) => `1\r\n${byte}\r\n`).join('');
const statusOf = (answer: { readonly text: () => string }) =>
  waitFor('an answer', () => /^HTTP\/1\.1 (\d+)/.exec(answer.text())?.[1]);

it('a body in chunks of one byte arrives', async () => {
  const answer = send(CHUNKED, `${oneByOne('{"a":[1,2]}')}0\r\n\r\n`);
  expect(await statusOf(answer)).toBe('200');
  expect(answer.text()).toContain('{"received":{"a":[1,2]}}');
});

it.each([
  ['a length', () => send(`Content-Length: ${MAX_BYTES + 1}\r\n`, '')],
  ['chunks', () => send(CHUNKED, oneByOne('1'.repeat(MAX_BYTES + 1)))],
])('a body that is too large is 413: %s', async (_name, start) => {
  expect(await statusOf(start())).toBe('413');
});

it('256 incomplete bodies of one address; verified callers have room of their own', async () => {
  const held = Array.from({ length: 256 }, () => send(CHUNKED, '1\r\n{\r\n'));
  const refused = await waitFor('no room', async () => {
    const answer = send(CHUNKED, `${oneByOne('{}')}0\r\n\r\n`);
    return (await statusOf(answer)) === '429' ? answer : undefined;
  });
  expect(refused.text()).toContain('rate_limited');
  expect(held.filter(({ text }) => text() !== '')).toEqual([]);
  expect(await statusOf(send(`Authorization: a\r\n${CHUNKED}`, `${oneByOne('{}')}0\r\n\r\n`))).toBe('200');
  for (const { socket } of held) socket.destroy();
  await waitFor('room again', async () => {
    return (await statusOf(send(CHUNKED, `${oneByOne('{}')}0\r\n\r\n`))) === '200';
  });
}, 200_000);
