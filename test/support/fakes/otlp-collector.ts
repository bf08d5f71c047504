/** An OpenTelemetry collector: OTLP/HTTP with JSON (opentelemetry-proto, ExportTraceServiceRequest). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

export interface OtlpCollector {
  readonly url: string;
  readonly paths: string[];
  readonly spans: CollectedSpan[];
  readonly resource: Map<string, object>;
  stop(): Promise<void>;
}

/** @param answer in place of taking what is sent */
export async function startOtlpCollector(
  answer?: (response: ServerResponse) => void,
): Promise<OtlpCollector> {
  const paths: string[] = [];
  const spans: CollectedSpan[] = [];
  const resource = new Map<string, object>();
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    paths.push(`${request.method} ${request.url} ${request.headers['content-type']}`);
    const message = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    if (answer !== undefined) return answer(response);
    for (const ofResource of message.resourceSpans) {
      for (const { key, value } of ofResource.resource.attributes) resource.set(key, value);
      for (const scope of ofResource.scopeSpans) spans.push(...scope.spans);
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  };
  const server: Server = createServer((request, response) => void receive(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths, spans, resource, stop };
}
