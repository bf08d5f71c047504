/** The smuggling corpus at Envoy with ext_authz over gRPC. */

import { byLane } from '../support/lane.ts';
import { ENVOY_GRPC } from '../support/points/envoy-grpc.ts';
import { smugglingSuite } from './suite.ts';

const newest = ENVOY_GRPC.slice(-1);
for (const driver of byLane({ fast: newest, extended: ENVOY_GRPC.slice(0, -1) })) {
  smugglingSuite(driver, ['strict']);
}
