/** One proof, one delivery at Envoy, with ext_authz over gRPC and over HTTP, and with an API that speaks HTTP/2. */

import { HTTP2_OCCASIONS, startCountingHttp2Upstream } from '../../support/fakes/counting-http2-upstream.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { ENVOY_GRPC, envoyGrpc } from '../../support/points/envoy-grpc.ts';
import { ENVOY_HTTP } from '../../support/points/envoy-http.ts';
import { oneDeliverySuite } from './suite.ts';

// Envoy waits for an API for 15 s.
const silenceMs = 20_000;

// The delivery is Envoy's, whichever way it asks.
for (const driver of [...ENVOY_GRPC, ...ENVOY_HTTP.slice(-1)]) oneDeliverySuite(driver, { silenceMs });

for (const version of envoyVersions.slice(-1)) {
  const driver = envoyGrpc(version, { protocol: 'h2c' });
  oneDeliverySuite(
    { ...driver, name: `${driver.name} before HTTP/2` },
    { silenceMs, openUpstream: () => startCountingHttp2Upstream(), occasions: HTTP2_OCCASIONS },
  );
}
