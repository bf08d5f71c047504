/** All HTTP/1.1 cases. */
import type { Http1Case } from '../../support/hostile/cases.ts';
import { CHUNKS } from './chunks.ts';
import { CONNECTION } from './connection.ts';
import { CONTENT_LENGTH, UNEXPECTED_BODIES } from './content-length.ts';
import { CONTROL } from './control.ts';
import { HEADER_LINES } from './header-lines.ts';
import { ABSOLUTE_TARGETS, HOST } from './host.ts';
import { PIPELINING } from './pipelining.ts';
import { OLD_VERSIONS, REQUEST_LINE } from './request-line.ts';
import { TRAILERS } from './trailers.ts';
import { HIDDEN_BODY, TRANSFER_ENCODING } from './transfer-encoding.ts';

export const HTTP1_CASES: readonly Http1Case[] = [
  ...CONTROL,
  ...TRANSFER_ENCODING,
  ...HIDDEN_BODY,
  ...CONTENT_LENGTH,
  ...UNEXPECTED_BODIES,
  ...CHUNKS,
  ...TRAILERS,
  ...REQUEST_LINE,
  ...OLD_VERSIONS,
  ...HOST,
  ...ABSOLUTE_TARGETS,
  ...HEADER_LINES,
  ...CONNECTION,
  ...PIPELINING,
];
