/** The conformance suite at Envoy with ext_authz over gRPC. */
import { byLane } from '../support/lane.ts';
import { ENVOY_GRPC } from '../support/points/envoy-grpc.ts';
import { conformanceSuite } from './suite.ts';

const newest = ENVOY_GRPC.slice(-1);
const drivers = byLane({ fast: newest, extended: ENVOY_GRPC.slice(0, -1) });
for (const driver of drivers) conformanceSuite(driver, !newest.includes(driver));
