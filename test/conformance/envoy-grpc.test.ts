/** The conformance suite at Envoy with ext_authz over gRPC. */
import { byLane } from '../support/lane.ts';
import { ENVOY_GRPC } from '../support/points/envoy-grpc.ts';
import { conformanceSuite } from './suite.ts';

const drivers = byLane({ fast: ENVOY_GRPC.slice(-1), extended: ENVOY_GRPC.slice(0, -1) });
for (const driver of drivers) conformanceSuite(driver);
