/** All HTTP/2 cases. */
import type { Http2Case } from '../../support/hostile/cases.ts';
import { CONTROL } from './control.ts';
import { FRAMES } from './frame-order.ts';
import { FRAMING } from './framing.ts';
import { HEADER_TEXT } from './header-text.ts';
import { HPACK } from './hpack.ts';
import { PSEUDO_HEADERS } from './pseudo-headers.ts';
import { STREAMS } from './streams.ts';

export const HTTP2_CASES: readonly Http2Case[] = [
  ...CONTROL,
  ...HEADER_TEXT,
  ...PSEUDO_HEADERS,
  ...FRAMING,
  ...HPACK,
  ...FRAMES,
  ...STREAMS,
];
