/** Unchanged requests. They must be served, or a campaign shows nothing. */
import type { Http2Case } from '../../support/hostile/cases.ts';
import { CREATE, READ } from './requests.ts';

const control = (name: string, rest: Pick<Http2Case, 'signs' | 'frames'>): Http2Case => ({
  name: `control: ${name}`,
  family: 'control',
  success: 'none: the request is served as it was signed',
  ...rest,
});

export const CONTROL: readonly Http2Case[] = [
  control('GET over HTTP/2', {
    signs: [{ route: 'readOrder' }],
    frames: [{ kind: 'headers', lines: READ, endStream: true }],
  }),
  control('POST over HTTP/2', {
    signs: [{ route: 'createOrder', body: 'order' }],
    frames: [
      { kind: 'headers', lines: CREATE },
      { kind: 'data', text: 'or' },
      { kind: 'data', text: 'der', endStream: true },
    ],
  }),
];
