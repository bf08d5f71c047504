/** Every HTTP server that is no enforcement point refuses a request with more header lines than its parser keeps. */
import { describe, expect, it } from '@jest/globals';
import { sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { SERVERS } from './http-servers.ts';

describe.each(Object.keys(SERVERS))('%s', (name) => {
  it('takes 100 lines, and answers 431 to more', async () => {
    const port = (await SERVERS[name]?.()) ?? 0;
    const statuses = [];
    for (const count of [99, 100, 999, 1_000, 1_001, 1_100]) {
      const lines = ['POST /livez HTTP/1.1', `Host: 127.0.0.1:${port}`, ...Array<string>(count).fill('a:')];
      const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
      statuses.push((await sendBytes({ host: '127.0.0.1', port }, bytes, 'POST')).status === 431);
    }
    expect(statuses).toEqual([false, true, true, true, true, true]);
  });
});
