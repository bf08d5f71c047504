/**
 * An enforcement point with every defect that the oracle must detect: it looks at the head of a connection's first request,
 * believes the proof, and forwards all bytes, those of all callers over one connection to the upstream.
 */
import { createHash, randomUUID } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { DECISION_EVENT_NAME, type DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import { decodeTranscript, parseTranscript } from '../../../src/protocol/transcript.ts';
import { CONTEXT_HEADERS } from '../../../src/protocol/wire-names.ts';
import { readResponse } from '../../../src/tools/conformance/wire/http1-response.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../../support/hostile/recording-upstream.ts';
import type { EnforcementPoint } from '../../support/points/enforcement-point.ts';

export interface CarelessProxy extends Omit<EnforcementPoint, 'upstream'> {
  readonly upstream: RecordingUpstream;
}

export async function startCarelessProxy(): Promise<CarelessProxy> {
  const upstream = await startRecordingUpstream('lenient');
  const decisions: DecisionEvent[] = [];
  const shared = connect(upstream.port, upstream.host);
  const callers = new Set<Socket>();
  /** Callers in the order of the requests that were seen: each receives one answer, whichever comes. */
  const queue: Socket[] = [];
  let received = Buffer.alloc(0);
  const deliver = () => {
    const answer = queue.length === 0 ? undefined : readResponse(received, 'GET', false);
    if (answer === undefined) return;
    queue.shift()?.write(received.subarray(0, answer.lengthBytes));
    received = received.subarray(answer.lengthBytes);
    deliver();
  };
  shared.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    deliver();
  });
  shared.on('error', () => undefined);
  const server = createServer((caller) => {
    callers.add(caller);
    let head = '';
    let isAllowed = false;
    caller.on('error', () => caller.destroy());
    caller.on('close', () => callers.delete(caller));
    caller.on('data', (bytes: Buffer) => {
      const text = bytes.toString('latin1');
      if (text.includes('\0')) return shutDown();
      if (isAllowed) return void shared.write(bytes);
      head += text;
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      const event = believe(head.slice(0, end));
      if (event === undefined) return caller.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
      decisions.push(event);
      isAllowed = true;
      queue.push(caller);
      deliver();
      shared.write(Buffer.from(withContext(head.slice(0, end), event) + head.slice(end + 2), 'latin1'));
    });
  });
  const shutDown = () => {
    server.close();
    for (const caller of callers) caller.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    address: { host: '127.0.0.1', port: typeof address === 'object' && address !== null ? address.port : 0 },
    upstream,
    decisions: async () => decisions,
    stop: async () => {
      shutDown();
      shared.destroy();
      await upstream.stop();
    },
  };
}

/** An allowed decision for whatever the transcript says, without a look at signature, body or target. */
function believe(head: string): DecisionEvent | undefined {
  const header = /^x-proofgate-transcript: (.*)$/im.exec(head)?.[1]?.trim() ?? '';
  const bytes = decodeTranscript(header);
  const transcript = bytes === undefined ? undefined : parseTranscript(bytes, 'authorization');
  if (bytes === undefined || transcript === undefined) return undefined;
  return {
    event: DECISION_EVENT_NAME,
    time: new Date().toISOString(),
    decision_id: randomUUID(),
    outcome: 'allowed',
    subject: transcript.subject,
    route_id: transcript.routeId,
    transcript_sha256: createHash('sha256').update(bytes).digest('base64url'),
    caller_verified: true,
    duration_us: 1,
  };
}

/** @returns the head with its last line's end; only the credentials are removed */
function withContext(head: string, event: DecisionEvent): string {
  const lines = head.split('\r\n').filter((line) => !/^(?:authorization|x-proofgate-(?:t|sig))/i.test(line));
  const context = [
    `${CONTEXT_HEADERS.subject}: ${event.subject}`,
    `${CONTEXT_HEADERS.routeId}: ${event.route_id}`,
    `${CONTEXT_HEADERS.decisionId}: ${event.decision_id}`,
  ];
  return `${[...lines, ...context].join('\r\n')}\r\n`;
}
